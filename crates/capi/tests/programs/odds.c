/* What programs rarely do, each the same over both libraries: walks that follow the writer, optimistic reads for an update,
   checkpoints without a WAL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static char* err = NULL;
static rocksdb_options_t* options;
static rocksdb_writeoptions_t* writes;
static rocksdb_readoptions_t* reads;

/* Tells the kind of an error. */
static void told(const char* what) {
  if (err) *strchr(err, ':') = 0;
  printf("%s: %s\n", what, err ? err : "ok");
  free(err);
  err = NULL;
}

static void show(rocksdb_iterator_t* walk) {
  size_t len;
  const char* key = rocksdb_iter_valid(walk) ? rocksdb_iter_key(walk, &len) : NULL;
  printf("at %.*s\n", key ? (int)len : 3, key ? key : "end");
}

static void tails(const char* dir) {
  rocksdb_t* db = rocksdb_open(options, dir, &err);
  rocksdb_readoptions_t* following = rocksdb_readoptions_create();
  rocksdb_readoptions_set_tailing(following, 1);
  rocksdb_put(db, writes, "b", 1, "1", 1, &err);
  rocksdb_iterator_t* walk = rocksdb_create_iterator(db, following);
  rocksdb_iter_seek_to_first(walk);
  show(walk);
  rocksdb_put(db, writes, "c", 1, "2", 1, &err);
  rocksdb_put(db, writes, "d", 1, "3", 1, &err);
  rocksdb_iter_next(walk);
  show(walk);
  rocksdb_delete(db, writes, "d", 1, &err);
  rocksdb_put(db, writes, "a", 1, "0", 1, &err);
  rocksdb_iter_seek(walk, "a", 1);
  show(walk);
  rocksdb_iter_seek_to_first(walk);
  show(walk);
  rocksdb_iter_seek(walk, "cc", 2);
  show(walk);
  rocksdb_put(db, writes, "e", 1, "4", 1, &err);
  rocksdb_iter_seek(walk, "cc", 2);
  show(walk);
  rocksdb_iter_destroy(walk);
  rocksdb_readoptions_destroy(following);

  char copy[1024];
  snprintf(copy, sizeof copy, "%s-copy", dir);
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
  rocksdb_checkpoint_create(checkpoint, copy, 0, &err);
  told("checkpoint");
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_livefiles_t const* files = rocksdb_livefiles(db);
  printf("flushed for it: %d\n", rocksdb_livefiles_count(files) > 0);
  rocksdb_livefiles_destroy(files);
  rocksdb_close(db);
}

static void optimists(const char* dir) {
  char place[1024];
  snprintf(place, sizeof place, "%s-optimistic", dir);
  rocksdb_optimistictransactiondb_t* db = rocksdb_optimistictransactiondb_open(options, place, &err);
  told("open");
  rocksdb_t* base = rocksdb_optimistictransactiondb_get_base_db(db);
  rocksdb_optimistictransaction_options_t* one = rocksdb_optimistictransaction_options_create();
  for (int changed = 0; changed < 2; changed++) {
    for (int exclusive = 0; exclusive < 2; exclusive++) {
      rocksdb_transaction_t* transaction = rocksdb_optimistictransaction_begin(db, writes, one, NULL);
      size_t len;
      free(rocksdb_transaction_get_for_update(transaction, reads, "k", 1, &len, (unsigned char)exclusive, &err));
      told("read for update");
      if (changed) rocksdb_put(base, writes, "k", 1, "1", 1, &err);
      rocksdb_transaction_commit(transaction, &err);
      told(changed ? "changed since" : "as it was");
      rocksdb_transaction_destroy(transaction);
      transaction = rocksdb_optimistictransaction_begin(db, writes, one, NULL);
      free(rocksdb_transaction_get(transaction, reads, "k", 1, &len, &err));
      rocksdb_put(base, writes, "k", 1, "2", 1, &err);
      rocksdb_transaction_commit(transaction, &err);
      told("only read");
      rocksdb_transaction_destroy(transaction);
    }
  }
  rocksdb_optimistictransaction_options_destroy(one);
  rocksdb_optimistictransactiondb_close_base_db(base);
  rocksdb_optimistictransactiondb_close(db);
}

static int table_at(rocksdb_t* db, int place, char* name) {
  rocksdb_livefiles_t const* tables = rocksdb_livefiles(db);
  int count = rocksdb_livefiles_count(tables);
  if (place < count) strcpy(name, rocksdb_livefiles_name(tables, place));
  rocksdb_livefiles_destroy(tables);
  return count;
}

static void rows_of(rocksdb_t* db) {
  for (const char* key = "abcd"; *key; key++) {
    size_t len;
    char* value = rocksdb_get(db, reads, key, 1, &len, &err);
    printf("%c%s", *key, value ? "+" : "-");
    free(value);
  }
  told(" rows");
}

/* Tables by their names: the oldest of level 0, one of the last level, and what stays. */
static void by_name(const char* dir) {
  char place[2048], name[64];
  snprintf(place, sizeof place, "%s-by-name", dir);
  rocksdb_options_t* quiet = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(quiet, 1);
  rocksdb_options_set_disable_auto_compactions(quiet, 1);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_t* db = rocksdb_open(quiet, place, &err);
  for (const char* key = "abc"; *key; key++) {
    rocksdb_put(db, writes, key, 1, "1", 1, &err);
    rocksdb_flush(db, flush, &err);
  }
  told("three tables");
  rocksdb_delete_file(db, "/999999.sst");
  rocksdb_delete_file(db, "nothing of that kind");
  /* The newest comes first. */
  table_at(db, 0, name);
  rocksdb_delete_file(db, name);
  table_at(db, 1, name);
  rocksdb_delete_file(db, name);
  rows_of(db);
  table_at(db, 2, name);
  rocksdb_delete_file(db, name);
  rows_of(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_put(db, writes, "d", 1, "1", 1, &err);
  rocksdb_flush(db, flush, &err);
  table_at(db, 0, name);
  rocksdb_delete_file(db, name);
  rows_of(db);
  /* One library may have made one table of the two, the other none. */
  for (int at = table_at(db, 0, name) - 1; at > 0; at--) {
    table_at(db, at, name);
    rocksdb_delete_file(db, name);
  }
  rows_of(db);
  rocksdb_close(db);
  db = rocksdb_open(quiet, place, &err);
  rows_of(db);
  rocksdb_close(db);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_options_destroy(quiet);
}

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  options = rocksdb_options_create();
  writes = rocksdb_writeoptions_create();
  reads = rocksdb_readoptions_create();
  rocksdb_options_set_create_if_missing(options, 1);
  tails(argv[1]);
  optimists(argv[1]);
  by_name(argv[1]);
  rocksdb_options_destroy(options);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_readoptions_destroy(reads);
  return 0;
}
