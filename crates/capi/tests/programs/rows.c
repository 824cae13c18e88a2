/* Writes rows to a directory, reads them all, or tells the options in it.
     rows write|read|options|remove DIR FIRST COUNT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static int fail(const char* what, const char* err) { return fprintf(stderr, "%s: %s\n", what, err), 1; }

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  char *err = NULL, key[32], value[64];
  int first = atoi(argv[3]), count = atoi(argv[4]), rows = 0;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_write_buffer_size(options, 128 << 10);
  rocksdb_options_set_uint64add_merge_operator(options);
  if (!strcmp(argv[1], "remove")) {
    rocksdb_destroy_db(options, argv[2], &err);
    return err ? fail("remove", err) : 0;
  }
  if (!strcmp(argv[1], "options")) {
    rocksdb_options_t *database, **loaded;
    char** families;
    size_t families_count;
    rocksdb_env_t* env = rocksdb_create_default_env();
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
    rocksdb_load_latest_options(argv[2], env, 1, cache, &database, &families_count, &families, &loaded, &err);
    if (err) return fail("load", err);
    for (size_t at = 0; at < families_count; at++)
      printf("%s: %zu %d %d\n", families[at], rocksdb_options_get_write_buffer_size(loaded[at]),
             rocksdb_options_get_compression(loaded[at]), rocksdb_options_get_num_levels(loaded[at]));
    rocksdb_load_latest_options_destroy(database, families, loaded, families_count);
    rocksdb_env_destroy(env);
    rocksdb_cache_destroy(cache);
    return 0;
  }
  const char* names[] = {"default", "odd"};
  const rocksdb_options_t* both[] = {options, options};
  rocksdb_column_family_handle_t* families[2];
  rocksdb_t* db = rocksdb_open_column_families(options, argv[2], 2, names, both, families, &err);
  if (err) return fail("open", err);
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  if (!strcmp(argv[1], "write")) {
    for (int at = first; at < first + count; at++) {
      size_t klen = (size_t)sprintf(key, "row%07d", at), vlen = (size_t)sprintf(value, "value %d of row %d", at * 7, at);
      rocksdb_put_cf(db, writes, families[at % 2], key, klen, value, vlen, &err);
      if (err) return fail("put", err);
      uint64_t one = 1;
      rocksdb_merge_cf(db, writes, families[0], "count", 5, (char*)&one, 8, &err);
      if (err) return fail("merge", err);
    }
    rocksdb_delete_range_cf(db, writes, families[1], "row", 3, "row", 3, &err);
    if (err) return fail("delete", err);
  }
  for (int family = 0; family < 2; family++) {
    rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db, reads, families[family]);
    for (rocksdb_iter_seek(it, "row", 3); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
      size_t klen, vlen;
      const char *at = rocksdb_iter_key(it, &klen), *is = rocksdb_iter_value(it, &vlen);
      int number = atoi(at + 3);
      size_t wanted = (size_t)sprintf(value, "value %d of row %d", number * 7, number);
      if (vlen != wanted || memcmp(is, value, vlen) || number % 2 != family) return fail("row", value);
      rows++;
    }
    rocksdb_iter_get_error(it, &err);
    if (err) return fail("walk", err);
    rocksdb_iter_destroy(it);
  }
  size_t len;
  char* sum = rocksdb_get_cf(db, reads, families[0], "count", 5, &len, &err);
  uint64_t counted = 0;
  if (sum) memcpy(&counted, sum, len == 8 ? 8 : 0);
  rocksdb_free(sum);
  if ((int)counted != rows) return fail("count", "differs");
  printf("%d rows\n", rows);
  rocksdb_column_family_handle_destroy(families[0]);
  rocksdb_column_family_handle_destroy(families[1]);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
