/* A primary and secondaries of it. The same lines by either library.
     secondary DIR */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static char* err;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;

static void must(const char* what) {
  if (!err) return;
  printf("%s: %s\n", what, err);
  exit(1);
}

/* Whether the call before was refused. */
static void refused(const char* what) {
  printf("%s: %s\n", what, err ? "refused" : "done");
  if (err) rocksdb_free(err);
  err = NULL;
}

static void show(const char* when, rocksdb_t* db, rocksdb_column_family_handle_t* family) {
  rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(db, reads, family);
  unsigned long rows = 0, sum = 0;
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    size_t klen, vlen;
    const char* key = rocksdb_iter_key(iter, &klen);
    const char* value = rocksdb_iter_value(iter, &vlen);
    rows++;
    for (size_t at = 0; at < klen; at++) sum = sum * 31 + (unsigned char)key[at];
    for (size_t at = 0; at < vlen; at++) sum = sum * 31 + (unsigned char)value[at];
  }
  rocksdb_iter_get_error(iter, &err);
  must("iterator");
  rocksdb_iter_destroy(iter);
  printf("%s: %lu rows, %lu\n", when, rows, sum);
}

static void put(rocksdb_t* db, rocksdb_column_family_handle_t* family, int from, int to) {
  for (int at = from; at < to; at++) {
    char key[16], value[200];
    snprintf(key, sizeof key, "k%05d", at * 7 % 1000);
    snprintf(value, sizeof value, "value %0150d", at);
    rocksdb_put_cf(db, writes, family, key, 6, value, strlen(value), &err);
    must("put");
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  char second[4096];
  snprintf(second, sizeof second, "%s-second", argv[1]);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_write_buffer_size(options, 64 << 10);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  const char* names[] = {"default", "other"};
  const rocksdb_options_t* both[] = {options, options};
  rocksdb_column_family_handle_t *own[2], *seen[2];
  rocksdb_t* db = rocksdb_open_column_families(options, argv[1], 2, names, both, own, &err);
  must("open");
  put(db, own[0], 0, 10);
  rocksdb_t* follower =
      rocksdb_open_as_secondary_column_families(options, argv[1], second, 2, names, both, seen, &err);
  must("open as secondary");
  show("opened", follower, seen[0]);
  for (int round = 0; round < 12; round++) {
    put(db, own[round % 2], round * 300, round * 300 + 300);
    show("before", follower, seen[round % 2]);
    if (round % 3 == 1) rocksdb_flush_cf(db, flush, own[0], &err);
    must("flush");
    if (round % 5 == 4) rocksdb_compact_range_cf(db, own[1], NULL, 0, NULL, 0);
    if (round == 7) {
      for (int family = 0; family < 2; family++) rocksdb_column_family_handle_destroy(own[family]);
      rocksdb_close(db);
      db = rocksdb_open_column_families(options, argv[1], 2, names, both, own, &err);
      must("open again");
    }
    rocksdb_try_catch_up_with_primary(follower, &err);
    must("catch up");
    show("after", follower, seen[0]);
    show("after", follower, seen[1]);
  }
  size_t len = 0;
  char* value = rocksdb_get(follower, reads, "k00007", 6, &len, &err);
  must("get");
  printf("%.*s\n", (int)len, value);
  rocksdb_free(value);
  rocksdb_put(follower, writes, "a", 1, "1", 1, &err);
  refused("a write to a secondary");
  rocksdb_try_catch_up_with_primary(db, &err);
  refused("a primary that catches up");
  for (int family = 0; family < 2; family++) rocksdb_column_family_handle_destroy(seen[family]);
  rocksdb_close(follower);
  follower = rocksdb_open_as_secondary(options, argv[1], second, &err);
  must("open as secondary");
  value = rocksdb_get(follower, reads, "k00700", 6, &len, &err);
  must("get");
  printf("%.*s\n", (int)len, value);
  rocksdb_free(value);
  rocksdb_close(follower);
  snprintf(second, sizeof second, "%s-nothing", argv[1]);
  rocksdb_open_as_secondary(options, second, second, &err);
  refused("a secondary of nothing");
  for (int family = 0; family < 2; family++) rocksdb_column_family_handle_destroy(own[family]);
  rocksdb_close(db);
  return 0;
}
