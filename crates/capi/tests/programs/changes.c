/* Writes, flushes, and the WAL read back with rocksdb_get_updates_since. The same lines by either library.
     changes DIR */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static char* err;

static void must(const char* what) {
  if (!err) return;
  printf("%s: %s\n", what, err);
  exit(1);
}

static void put(void* s, const char* key, size_t klen, const char* value, size_t vlen) {
  (void)s;
  printf(" put %.*s=%.*s", (int)klen, key, (int)vlen, value);
}

static void deleted(void* s, const char* key, size_t klen) {
  (void)s;
  printf(" delete %.*s", (int)klen, key);
}

static void tell(const rocksdb_wal_iterator_t* iter) {
  uint64_t seq = 0;
  rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(iter, &seq);
  if (rocksdb_writebatch_count(batch) > 0) {
    printf("%llu:", (unsigned long long)seq);
    rocksdb_writebatch_iterate(batch, NULL, put, deleted);
    puts("");
  }
  rocksdb_writebatch_destroy(batch);
}

static rocksdb_wal_iterator_t* from(rocksdb_t* db, uint64_t seq) {
  printf("from %llu\n", (unsigned long long)seq);
  rocksdb_wal_iterator_t* iter = rocksdb_get_updates_since(db, seq, NULL, &err);
  must("get_updates_since");
  for (; rocksdb_wal_iter_valid(iter); rocksdb_wal_iter_next(iter)) tell(iter);
  rocksdb_wal_iter_status(iter, &err);
  must("status");
  return iter;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_WAL_ttl_seconds(options, 100000);
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_t* db = NULL;
  for (int round = 0; round < 3; round++) {
    db = rocksdb_open(options, argv[1], &err);
    must("open");
    char text[16];
    for (int at = 0; at < 20; at++) {
      int len = snprintf(text, sizeof text, "%d-%d", round, at);
      if (at % 5 == 4) rocksdb_delete(db, writes, "key", 3, &err);
      else rocksdb_put(db, writes, "key", 3, text, (size_t)len, &err);
      must("write");
      if (at % 7 == 6) rocksdb_flush(db, flush, &err);
      must("flush");
    }
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "a", 1, "1", 1);
    rocksdb_writebatch_delete(batch, "b", 1);
    rocksdb_writebatch_put_log_data(batch, "note", 4);
    rocksdb_write(db, writes, batch, &err);
    must("batch");
    rocksdb_writebatch_destroy(batch);
    if (round < 2) rocksdb_close(db);
  }
  rocksdb_wal_iter_destroy(from(db, 0));
  rocksdb_wal_iter_destroy(from(db, 22));
  rocksdb_wal_iterator_t* iter = from(db, 60);
  /* It goes on with what is written later. */
  rocksdb_put(db, writes, "later", 5, "1", 1, &err);
  must("put");
  for (rocksdb_wal_iter_next(iter); rocksdb_wal_iter_valid(iter); rocksdb_wal_iter_next(iter)) tell(iter);
  rocksdb_wal_iter_destroy(iter);
  rocksdb_get_updates_since(db, 1000, NULL, &err);
  printf("%s\n", err ? err : "no error");
  rocksdb_free(err);
  printf("%llu\n", (unsigned long long)rocksdb_get_latest_sequence_number(db));
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_flushoptions_destroy(flush);
  return 0;
}
