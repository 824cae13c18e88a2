/* Random calls, and what they answer, in lines. By the same seed the same lines, whatever library serves.
     answers DIR SEED CALLS
   Keys are few, so that most calls meet earlier ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static uint64_t state;
static rocksdb_t* db;
static int backwards;
static rocksdb_column_family_handle_t* families[3];
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;
static char v[8192];

static uint32_t draw(uint32_t below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(state >> 33) % below;
}

static rocksdb_column_family_handle_t* family(void) { return families[draw(3)]; }

static size_t key(char* to) { return (size_t)sprintf(to, "k%02u.%02u", draw(10), draw(30)); }

static size_t value(char* to) {
  size_t len = draw(10) ? draw(100) : draw(5000);
  for (size_t at = 0; at < len; at++) to[at] = (char)('a' + draw(26));
  return len;
}

/* The part of an error that programs branch on. */
static void print_error(const char* what, char** err) {
  if (*err) {
    printf("%s: %.*s\n", what, (int)strcspn(*err, ":"), *err);
    rocksdb_free(*err);
    *err = NULL;
  }
}

static void print_bytes(const char* what, const char* bytes, size_t len) {
  uint32_t sum = 0;
  for (size_t at = 0; at < len; at++) sum = sum * 31 + (unsigned char)bytes[at];
  printf("%s %zu %08x\n", what, len, sum);
}

static void get(void) {
  char k[32], *err = NULL;
  size_t klen = key(k), vlen = 12345;
  rocksdb_column_family_handle_t* f = family();
  if (draw(2)) {
    char* found = rocksdb_get_cf(db, reads, f, k, klen, &vlen, &err);
    print_error("get", &err);
    if (found) print_bytes(k, found, vlen);
    else printf("%s is not there, %zu\n", k, vlen);
    rocksdb_free(found);
  } else {
    rocksdb_pinnableslice_t* found = rocksdb_get_pinned_cf(db, reads, f, k, klen, &err);
    print_error("get", &err);
    if (!found) printf("%s is not there\n", k);
    else {
      const char* bytes = rocksdb_pinnableslice_value(found, &vlen);
      print_bytes(k, bytes, vlen);
    }
    rocksdb_pinnableslice_destroy(found);
  }
}

static void get_many(void) {
  char k[8][32], *values[8], *errs[8];
  const char* keys[8];
  size_t klens[8], vlens[8], count = 1 + draw(8);
  const rocksdb_column_family_handle_t* of[8];
  for (size_t at = 0; at < count; at++) klens[at] = key(k[at]), keys[at] = k[at], of[at] = family();
  rocksdb_multi_get_cf(db, reads, of, count, keys, klens, values, vlens, errs);
  for (size_t at = 0; at < count; at++) {
    print_error("many", &errs[at]);
    if (values[at]) print_bytes(k[at], values[at], vlens[at]);
    else printf("%s is none of many\n", k[at]);
    rocksdb_free(values[at]);
  }
  rocksdb_pinnableslice_t* pinned[8];
  rocksdb_batched_multi_get_cf(db, reads, families[1], count, keys, klens, pinned, errs, 0);
  for (size_t at = 0; at < count; at++) {
    size_t len = 0;
    print_error("batched", &errs[at]);
    if (pinned[at]) print_bytes("=", rocksdb_pinnableslice_value(pinned[at], &len), len);
    rocksdb_pinnableslice_destroy(pinned[at]);
  }
}

static void walk(void) {
  char k[32], low[32], high[32], *err = NULL;
  int lower = !draw(4), upper = !draw(4);
  size_t lowlen = key(low), highlen = key(high);
  if (lower) rocksdb_readoptions_set_iterate_lower_bound(reads, low, lowlen);
  if (upper) rocksdb_readoptions_set_iterate_upper_bound(reads, high, highlen);
  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db, reads, family());
  printf("new %d\n", rocksdb_iter_valid(it));
  switch (draw(4)) {
    case 0: rocksdb_iter_seek_to_first(it); break;
    case 1: rocksdb_iter_seek_to_last(it); break;
    case 2: rocksdb_iter_seek_for_prev(it, k, key(k)); break;
    default: rocksdb_iter_seek(it, k, key(k));
  }
  for (int left = (int)draw(30); left && rocksdb_iter_valid(it); left--) {
    size_t klen, vlen;
    const char* at = rocksdb_iter_key(it, &klen);
    printf("%.*s ", (int)klen, at);
    at = rocksdb_iter_value(it, &vlen);
    print_bytes("=", at, vlen);
    if (draw(3)) rocksdb_iter_next(it);
    else rocksdb_iter_prev(it);
  }
  printf("then %d\n", rocksdb_iter_valid(it));
  rocksdb_iter_get_error(it, &err);
  print_error("walk", &err);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_set_iterate_lower_bound(reads, NULL, 0);
  rocksdb_readoptions_set_iterate_upper_bound(reads, NULL, 0);
}

static void print_put(void* s, const char* k, size_t klen, const char* val, size_t vlen) {
  (void)s;
  printf("put %.*s ", (int)klen, k);
  print_bytes("=", val, vlen);
}

static void print_deleted(void* s, const char* k, size_t klen) {
  (void)s;
  printf("delete %.*s\n", (int)klen, k);
}

/* Records of the default family only where they are shown: RocksDB's function shows no others without an error. */
static void fill(rocksdb_writebatch_t* batch, int shown) {
  char k[32], end[32];
  for (int left = (int)draw(10); left; left--) {
    size_t klen = key(k), vlen = value(v);
    rocksdb_column_family_handle_t* f = shown ? families[0] : family();
    switch (draw(shown ? 4 : 7)) {
      case 0: rocksdb_writebatch_delete_cf(batch, f, k, klen); break;
      case 1: {
        const char *keys[] = {"k", k + 1}, *values[] = {v, "tail"};
        size_t klens[] = {1, klen - 1}, vlens[] = {vlen, 4};
        rocksdb_writebatch_putv_cf(batch, f, 2, keys, klens, 2, values, vlens);
        break;
      }
      case 2: rocksdb_writebatch_put_log_data(batch, "note", 4); break;
      case 3: rocksdb_writebatch_put_cf(batch, f, k, klen, v, vlen); break;
      case 4: rocksdb_writebatch_merge_cf(batch, f, k, klen, v, vlen % 50); break;
      default:
        sprintf(end, "%.3s%s", k, backwards ? "" : "~");
        rocksdb_writebatch_delete_range_cf(batch, f, k, klen, end, strlen(end));
    }
  }
}

static void write_batch(void) {
  char* err = NULL;
  int shown = (int)draw(2);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  fill(batch, shown);
  if (!draw(5)) rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_set_save_point(batch);
  fill(batch, shown);
  rocksdb_writebatch_set_save_point(batch);
  fill(batch, shown);
  if (draw(2)) rocksdb_writebatch_rollback_to_save_point(batch, &err);
  else rocksdb_writebatch_pop_save_point(batch, &err);
  print_error("savepoint", &err);
  if (!draw(3)) rocksdb_writebatch_rollback_to_save_point(batch, &err);
  print_error("rollback", &err);
  if (!draw(3)) {
    rocksdb_writebatch_rollback_to_save_point(batch, &err);
    rocksdb_writebatch_rollback_to_save_point(batch, &err);
    print_error("rollback of none", &err);
  }
  printf("%d records\n", rocksdb_writebatch_count(batch));
  size_t size;
  const char* bytes = rocksdb_writebatch_data(batch, &size);
  print_bytes("batch", bytes + 8, size - 8);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(bytes, size);
  rocksdb_write(db, writes, copy, &err);
  print_error("write", &err);
  if (shown) rocksdb_writebatch_iterate(batch, NULL, print_put, print_deleted);
  if (!draw(3)) rocksdb_write(db, writes, batch, &err);
  print_error("write again", &err);
  rocksdb_writebatch_destroy(batch);
  rocksdb_writebatch_destroy(copy);
}

/* Values joined by commas; from malloc. */
static char* join(const char* old, size_t oldlen, const char* const* list, const size_t* lens, int count, size_t* len) {
  size_t size = oldlen;
  for (int at = 0; at < count; at++) size += lens[at] + 1;
  char* joined = malloc(size + 1);
  size_t end = 0;
  if (old) memcpy(joined, old, oldlen), end = oldlen;
  for (int at = 0; at < count; at++) {
    if (old || at) joined[end++] = ',';
    memcpy(joined + end, list[at], lens[at]);
    end += lens[at];
  }
  *len = end;
  return joined;
}

static char* full(void* s, const char* k, size_t klen, const char* old, size_t oldlen, const char* const* list,
                  const size_t* lens, int count, unsigned char* success, size_t* len) {
  (void)s, (void)k, (void)klen;
  *success = 1;
  return join(old, oldlen, list, lens, count, len);
}

static char* partial(void* s, const char* k, size_t klen, const char* const* list, const size_t* lens, int count,
                     unsigned char* success, size_t* len) {
  (void)s, (void)k, (void)klen;
  *success = 1;
  return join(NULL, 0, list, lens, count, len);
}

/* Backwards, by bytes. */
static int compare(void* s, const char* a, size_t alen, const char* b, size_t blen) {
  (void)s;
  int order = memcmp(a, b, alen < blen ? alen : blen);
  if (order == 0) order = alen < blen ? -1 : alen > blen;
  return -order;
}

static const char* name(void* s) { return (const char*)s; }

static void destroyed(void* s) { printf("%s is destroyed\n", (char*)s); }

static void left(void* s) { (void)s; }

/* Values that begin with "z" go, those with "y" are changed. */
static unsigned char filter(void* s, int level, const char* k, size_t klen, const char* old, size_t oldlen, char** changed,
                            size_t* len, unsigned char* is_changed) {
  (void)s, (void)level, (void)k, (void)klen;
  if (oldlen && old[0] == 'y') *changed = (char*)"changed", *len = 7, *is_changed = 1;
  return oldlen && old[0] == 'z';
}

static char* cut(void* s, const char* k, size_t len, size_t* cutlen) {
  (void)s, (void)len;
  *cutlen = 3;
  return (char*)k;
}

static unsigned char in_domain(void* s, const char* k, size_t len) {
  (void)s, (void)k;
  return len >= 3;
}

static void print_property(const char* which) {
  uint64_t number = 0;
  int is_number = rocksdb_property_int_cf(db, families[1], which, &number);
  char* text = rocksdb_property_value_cf(db, families[1], which);
  printf("%s is told: %d %d\n", which, text != NULL, is_number);
  rocksdb_free(text);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* dir = argv[1];
  state = strtoull(argv[2], NULL, 10);
  char k[32], *err = NULL;
  backwards = !draw(3);
  int filtered = !draw(3);
  rocksdb_comparator_t* order = rocksdb_comparator_create("backwards", destroyed, compare, name);
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_block_based_table_options_t* blocks = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(blocks, cache);
  rocksdb_block_based_options_set_block_size(blocks, 1024);
  if (draw(2)) rocksdb_block_based_options_set_filter_policy(blocks, rocksdb_filterpolicy_create_bloom(10));
  rocksdb_options_set_block_based_table_factory(options, blocks);
  rocksdb_block_based_options_destroy(blocks);
  rocksdb_options_set_env(options, env);
  rocksdb_options_set_write_buffer_size(options, 64 << 10);
  rocksdb_options_set_max_open_files(options, 100);
  rocksdb_options_set_target_file_size_base(options, 64 << 10);
  rocksdb_options_set_compression(options, draw(2) ? rocksdb_snappy_compression : rocksdb_no_compression);
  rocksdb_options_set_merge_operator(options, rocksdb_mergeoperator_create("comma", left, full, partial, NULL, name));
  if (draw(2))
    rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create("three", left, cut, in_domain, in_domain, name));
  rocksdb_compactionfilter_t* drops = rocksdb_compactionfilter_create("drops", left, filter, name);
  if (filtered) rocksdb_options_set_compaction_filter(options, drops);
  if (backwards) rocksdb_options_set_comparator(options, order);
  reads = rocksdb_readoptions_create();
  rocksdb_readoptions_set_total_order_seek(reads, 1);
  rocksdb_readoptions_set_fill_cache(reads, (unsigned char)draw(2));
  writes = rocksdb_writeoptions_create();

  db = rocksdb_open(options, dir, &err);
  printf("open without one: %d\n", db != NULL);
  print_error("open", &err);
  rocksdb_options_set_create_if_missing(options, 1);
  const char* names[] = {"default", "one", "two"};
  const rocksdb_options_t* all[] = {options, options, options};
  db = rocksdb_open_column_families(options, dir, 3, names, all, families, &err);
  printf("open with families that are not there: %d\n", db != NULL);
  print_error("open", &err);
  rocksdb_options_set_create_missing_column_families(options, 1);
  db = rocksdb_open_column_families(options, dir, 3, names, all, families, &err);
  print_error("open", &err);
  rocksdb_t* second = rocksdb_open(options, dir, &err);
  printf("open twice: %d\n", second != NULL);
  print_error("open", &err);

  const rocksdb_snapshot_t* snapshot = NULL;
  for (int left = atoi(argv[3]); left; left--) {
    rocksdb_column_family_handle_t* f = family();
    size_t klen = key(k), vlen = value(v);
    switch (draw(16)) {
      case 0: case 1: case 2:
        rocksdb_writeoptions_set_sync(writes, !draw(20));
        rocksdb_put_cf(db, writes, f, k, klen, v, vlen, &err);
        print_error("put", &err);
        break;
      case 3: rocksdb_delete_cf(db, writes, f, k, klen, &err); print_error("delete", &err); break;
      case 4: case 5: write_batch(); break;
      case 6: case 7: get(); break;
      case 8: get_many(); break;
      case 9: case 10: walk(); break;
      case 11: rocksdb_merge_cf(db, writes, f, k, klen, v, vlen % 40, &err); print_error("merge", &err); break;
      case 12: {
        char end[32];
        size_t endlen = key(end);
        /* A range that ends before it begins would end all writes to RocksDB. */
        int swaps = (strcmp(k, end) > 0) != backwards;
        if (swaps) rocksdb_delete_range_cf(db, writes, f, end, endlen, k, klen, &err);
        else rocksdb_delete_range_cf(db, writes, f, k, klen, end, endlen, &err);
        print_error("range", &err);
        break;
      }
      case 13:
        rocksdb_readoptions_set_snapshot(reads, NULL);
        if (snapshot) rocksdb_release_snapshot(db, snapshot);
        /* Filters drop what snapshots could still see, in RocksDB. */
        snapshot = draw(2) && !filtered ? rocksdb_create_snapshot(db) : NULL;
        rocksdb_readoptions_set_snapshot(reads, snapshot);
        break;
      case 14:
        if (filtered) break;
        if (!draw(6)) rocksdb_compact_range_cf(db, f, NULL, 0, NULL, 0);
        else if (!draw(6)) {
          rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
          rocksdb_flush_cf(db, flush, f, &err);
          print_error("flush", &err);
          rocksdb_flushoptions_destroy(flush);
        }
        break;
      default:
        if (draw(15)) break;
        rocksdb_readoptions_set_snapshot(reads, NULL);
        if (snapshot) rocksdb_release_snapshot(db, snapshot);
        snapshot = NULL;
        for (int at = 0; at < 3; at++) rocksdb_column_family_handle_destroy(families[at]);
        rocksdb_close(db);
        size_t count;
        char** listed = rocksdb_list_column_families(options, dir, &count, &err);
        print_error("list", &err);
        for (size_t at = 0; at < count; at++) printf("family %s\n", listed[at]);
        rocksdb_list_column_families_destroy(listed, count);
        db = rocksdb_open(options, dir, &err);
        printf("open without its families: %d\n", db != NULL);
        print_error("open", &err);
        db = rocksdb_open_column_families(options, dir, 3, names, all, families, &err);
        print_error("open", &err);
    }
  }
  const char* properties[] = {"rocksdb.num-files-at-level0", "rocksdb.num-snapshots", "rocksdb.stats", "rocksdb.other",
                              "rocksdb.estimate-num-keys", "rocksdb.num-files-at-level7"};
  for (int at = 0; at < 6; at++) print_property(properties[at]);
  rocksdb_readoptions_set_snapshot(reads, NULL);
  if (snapshot) rocksdb_release_snapshot(db, snapshot);
  for (int at = 0; at < 3; at++) {
    rocksdb_compact_range_cf(db, families[at], NULL, 0, NULL, 0);
    const char *from[] = {"a", backwards ? "z" : "k"}, *to[] = {"a", backwards ? "a" : "z"};
    size_t lens[] = {1, 1};
    uint64_t sizes[2];
    rocksdb_approximate_sizes_cf(db, families[at], 2, from, lens, to, lens, sizes, &err);
    rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db, reads, families[at]);
    int rows = 0;
    for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it), rows++) {
      size_t klen, vlen;
      const char *at_key = rocksdb_iter_key(it, &klen), *is = rocksdb_iter_value(it, &vlen);
      printf("%.*s ", (int)klen, at_key);
      print_bytes("=", is, vlen);
    }
    rocksdb_iter_destroy(it);
    printf("sizes: %d %d\n", sizes[0] > 0, (sizes[1] > 0) == (rows > 0));
  }
  rocksdb_create_column_family(db, options, "two", &err);
  print_error("create", &err);
  rocksdb_drop_column_family(db, families[2], &err);
  print_error("drop", &err);
  rocksdb_put_cf(db, writes, families[2], "k", 1, "v", 1, &err);
  print_error("put to a dropped family", &err);
  printf("family %u\n", rocksdb_column_family_handle_get_id(families[1]));
  for (int at = 0; at < 3; at++) rocksdb_column_family_handle_destroy(families[at]);
  rocksdb_close(db);

  rocksdb_options_set_error_if_exists(options, 1);
  db = rocksdb_open(options, dir, &err);
  printf("open one that is there: %d\n", db != NULL);
  print_error("open", &err);
  rocksdb_options_destroy(options);
  rocksdb_compactionfilter_destroy(drops);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_cache_destroy(cache);
  rocksdb_comparator_destroy(order);
  rocksdb_env_destroy(env);
  return 0;
}
