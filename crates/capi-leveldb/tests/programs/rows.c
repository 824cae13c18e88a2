/* Rows of a directory that one library writes and the other reads.
     rows write|read|remove DIR FIRST COUNT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leveldb/c.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  int first = atoi(argv[3]), count = atoi(argv[4]);
  char *err = NULL, k[32], v[128];
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, argv[1][0] == 'w');
  leveldb_options_set_write_buffer_size(options, 64 << 10);
  leveldb_filterpolicy_t* bloom = leveldb_filterpolicy_create_bloom(10);
  leveldb_options_set_filter_policy(options, bloom);
  if (!strcmp(argv[1], "remove")) {
    leveldb_destroy_db(options, argv[2], &err);
    if (err) return fprintf(stderr, "%s\n", err), 1;
    return 0;
  }
  leveldb_t* db = leveldb_open(options, argv[2], &err);
  if (err) return fprintf(stderr, "%s\n", err), 1;
  leveldb_readoptions_t* reads = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(reads, 1);
  leveldb_writeoptions_t* writes = leveldb_writeoptions_create();
  for (int at = first; at < first + count; at++) {
    size_t klen = (size_t)sprintf(k, "row%07d", at), vlen = (size_t)sprintf(v, "value %d of row %d", at * 7, at);
    if (argv[1][0] == 'w') {
      leveldb_put(db, writes, k, klen, v, vlen, &err);
    } else {
      size_t len;
      char* found = leveldb_get(db, reads, k, klen, &len, &err);
      if (!found || len != vlen || memcmp(found, v, len)) return fprintf(stderr, "%s is wrong\n", k), 1;
      leveldb_free(found);
    }
    if (err) return fprintf(stderr, "%s\n", err), 1;
  }
  leveldb_iterator_t* it = leveldb_create_iterator(db, reads);
  int rows = 0;
  for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) rows++;
  leveldb_iter_get_error(it, &err);
  if (err) return fprintf(stderr, "%s\n", err), 1;
  printf("%d rows\n", rows);
  leveldb_iter_destroy(it);
  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(writes);
  leveldb_close(db);
  leveldb_options_destroy(options);
  leveldb_filterpolicy_destroy(bloom);
  return 0;
}
