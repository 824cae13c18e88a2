/* Two transactions at a time, a batch with an index, and what they answer, in lines.
     transactions DIR SEED CALLS
   An even seed is pessimistic, an odd one optimistic. By the same seed the same lines, whatever library serves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rocksdb/c.h"

static uint64_t state;
static rocksdb_transactiondb_t* locking;
static rocksdb_optimistictransactiondb_t* optimistic;
static rocksdb_t* base;
static rocksdb_transaction_options_t* locking_options;
static rocksdb_optimistictransaction_options_t* optimistic_options;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;

static uint32_t draw(uint32_t below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(state >> 33) % below;
}

static size_t key(char* to) { return (size_t)sprintf(to, "k%02u", draw(30)); }

static void print_error(const char* what, char** err) {
  if (*err) {
    printf("%s: %.*s\n", what, (int)strcspn(*err, ":"), *err);
    rocksdb_free(*err);
    *err = NULL;
  }
}

static void print_value(const char* k, char* value, size_t len) {
  if (value) printf("%s = %.*s\n", k, (int)len, value);
  else printf("%s is not there, %zu\n", k, len);
  rocksdb_free(value);
}

static void walk(rocksdb_iterator_t* it) {
  char k[32], *err = NULL;
  switch (draw(4)) {
    case 0: rocksdb_iter_seek_to_first(it); break;
    case 1: rocksdb_iter_seek_to_last(it); break;
    case 2: rocksdb_iter_seek_for_prev(it, k, key(k)); break;
    default: rocksdb_iter_seek(it, k, key(k));
  }
  for (int left = (int)draw(20); left && rocksdb_iter_valid(it); left--) {
    size_t klen, vlen;
    const char *at = rocksdb_iter_key(it, &klen), *is = rocksdb_iter_value(it, &vlen);
    printf("%.*s = %.*s\n", (int)klen, at, (int)vlen, is);
    if (draw(3)) rocksdb_iter_next(it);
    else rocksdb_iter_prev(it);
  }
  printf("then %d\n", rocksdb_iter_valid(it));
  rocksdb_iter_get_error(it, &err);
  print_error("walk", &err);
  rocksdb_iter_destroy(it);
}

static rocksdb_transaction_t* begin(rocksdb_transaction_t* old) {
  if (locking) {
    rocksdb_transaction_options_set_set_snapshot(locking_options, (unsigned char)draw(2));
    return rocksdb_transaction_begin(locking, writes, locking_options, old);
  }
  return rocksdb_optimistictransaction_begin(optimistic, writes, optimistic_options, old);
}

/* Prepares it; whether it is. */
static int prepare(rocksdb_transaction_t* txn) {
  static unsigned count;
  char name[32], *err = NULL;
  rocksdb_transaction_prepare(txn, &err);
  print_error("nameless", &err);
  size_t len = (size_t)sprintf(name, "t%u", ++count);
  rocksdb_transaction_set_name(txn, name, len, &err);
  print_error("name", &err);
  rocksdb_transaction_prepare(txn, &err);
  printf("prepare %d\n", err == NULL);
  print_error("prepare", &err);
  return err == NULL;
}

/* True when the transaction is over. */
static int step(rocksdb_transaction_t* txn) {
  char k[32], v[32], *err = NULL;
  size_t klen = key(k), vlen = (size_t)sprintf(v, "v%u", draw(1000)), len = 7;
  switch (draw(14)) {
    case 0: case 1: case 2: rocksdb_transaction_put(txn, k, klen, v, vlen, &err); print_error("put", &err); break;
    case 3: rocksdb_transaction_delete(txn, k, klen, &err); print_error("delete", &err); break;
    case 4: case 5: {
      char* value = rocksdb_transaction_get(txn, reads, k, klen, &len, &err);
      print_error("get", &err);
      print_value(k, value, len);
      break;
    }
    case 6: {
      /* Optimistic ones of RocksDB forget what was read for an update after a savepoint. */
      if (!locking) break;
      char* value = rocksdb_transaction_get_for_update(txn, reads, k, klen, &len, (unsigned char)draw(2), &err);
      print_error("get for update", &err);
      print_value(k, value, len);
      break;
    }
    case 7: walk(rocksdb_transaction_create_iterator(txn, reads)); break;
    case 8: rocksdb_transaction_set_savepoint(txn); break;
    case 9: rocksdb_transaction_rollback_to_savepoint(txn, &err); print_error("savepoint", &err); break;
    case 10: {
      const rocksdb_snapshot_t* snapshot = rocksdb_transaction_get_snapshot(txn);
      if (!locking) printf("snapshot: %d\n", snapshot != NULL);
      rocksdb_free((void*)snapshot);
      break;
    }
    case 11: {
      char *values[2], *errs[2];
      const char* keys[] = {k, "k07"};
      size_t lens[] = {klen, 3}, vlens[2];
      rocksdb_transaction_multi_get(txn, reads, 2, keys, lens, values, vlens, errs);
      for (int at = 0; at < 2; at++) print_error("many", &errs[at]), print_value(keys[at], values[at], vlens[at]);
      break;
    }
    case 12:
      /* One that wrote nothing is looked at again by RocksDB only. */
      rocksdb_transaction_put(txn, k, klen, "last", 4, &err);
      print_error("last put", &err);
      if (locking && draw(2) && prepare(txn)) {
        if (draw(3) == 0) {
          rocksdb_transaction_rollback(txn, &err);
          print_error("rollback", &err);
          return 1;
        }
      }
      rocksdb_transaction_commit(txn, &err);
      printf("commit %d\n", err == NULL);
      print_error("commit", &err);
      return 1;
    default:
      if (draw(2)) break;
      rocksdb_transaction_rollback(txn, &err);
      print_error("rollback", &err);
      return 1;
  }
  return 0;
}

static void outside(void) {
  char k[32], v[32], *err = NULL;
  size_t klen = key(k), vlen = (size_t)sprintf(v, "v%u", draw(1000)), len;
  char* value;
  if (locking) {
    switch (draw(3)) {
      case 0: rocksdb_transactiondb_put(locking, writes, k, klen, v, vlen, &err); break;
      case 1: rocksdb_transactiondb_delete(locking, writes, k, klen, &err); break;
      default:
        value = rocksdb_transactiondb_get(locking, reads, k, klen, &len, &err);
        print_value(k, value, len);
    }
  } else {
    switch (draw(3)) {
      case 0: rocksdb_put(base, writes, k, klen, v, vlen, &err); break;
      case 1: rocksdb_delete(base, writes, k, klen, &err); break;
      default:
        value = rocksdb_get(base, reads, k, klen, &len, &err);
        print_value(k, value, len);
    }
  }
  print_error("outside", &err);
}

/* Ends what was prepared before the database was opened. */
static void end_prepared(void) {
  size_t count;
  char* err = NULL;
  rocksdb_transaction_t** prepared = rocksdb_transactiondb_get_prepared_transactions(locking, &count);
  printf("%zu prepared\n", count);
  for (size_t at = 0; at < count; at++) {
    size_t len;
    char* name = rocksdb_transaction_get_name(prepared[at], &len);
    printf("%.*s\n", (int)len, name);
    rocksdb_free(name);
    if (draw(2)) rocksdb_transaction_commit(prepared[at], &err);
    else rocksdb_transaction_rollback(prepared[at], &err);
    print_error("end", &err);
    rocksdb_transaction_destroy(prepared[at]);
  }
  rocksdb_free(prepared);
}

/* A batch with an index over the base. */
static void indexed(void) {
  char k[32], v[32], *err = NULL;
  size_t len;
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  for (int left = (int)draw(12); left; left--) {
    size_t klen = key(k), vlen = (size_t)sprintf(v, "w%u", draw(1000));
    switch (draw(5)) {
      case 0: rocksdb_writebatch_wi_delete(batch, k, klen); break;
      case 1: rocksdb_writebatch_wi_set_save_point(batch); break;
      case 2: rocksdb_writebatch_wi_rollback_to_save_point(batch, &err); print_error("back", &err); break;
      default: rocksdb_writebatch_wi_put(batch, k, klen, v, vlen);
    }
  }
  printf("%d writes\n", rocksdb_writebatch_wi_count(batch));
  size_t klen = key(k);
  rocksdb_options_t* options = rocksdb_options_create();
  char* value = rocksdb_writebatch_wi_get_from_batch(batch, options, k, klen, &len, &err);
  print_error("from batch", &err);
  print_value(k, value, len);
  value = rocksdb_writebatch_wi_get_from_batch_and_db(batch, base, reads, k, klen, &len, &err);
  print_error("from both", &err);
  print_value(k, value, len);
  walk(rocksdb_writebatch_wi_create_iterator_with_base(batch, rocksdb_create_iterator(base, reads)));
  if (draw(2)) rocksdb_write_writebatch_wi(base, writes, batch, &err);
  print_error("write", &err);
  rocksdb_writebatch_wi_clear(batch);
  printf("%d writes\n", rocksdb_writebatch_wi_count(batch));
  rocksdb_writebatch_wi_destroy(batch);
  rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  state = strtoull(argv[2], NULL, 10);
  char* err = NULL;
  int is_locking = state % 2 == 0;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  rocksdb_transactiondb_options_t* db_options = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_default_lock_timeout(db_options, 2);
  rocksdb_transactiondb_options_set_transaction_lock_timeout(db_options, 2);
  locking_options = rocksdb_transaction_options_create();
  optimistic_options = rocksdb_optimistictransaction_options_create();
  rocksdb_optimistictransaction_options_set_set_snapshot(optimistic_options, 1);
  if (is_locking) locking = rocksdb_transactiondb_open(options, db_options, argv[1], &err);
  else optimistic = rocksdb_optimistictransactiondb_open(options, argv[1], &err);
  print_error("open", &err);
  if (!is_locking) base = rocksdb_optimistictransactiondb_get_base_db(optimistic);
  rocksdb_transaction_t* txns[2] = {begin(NULL), begin(NULL)};
  for (int left = atoi(argv[3]); left; left--) {
    int which = (int)draw(2);
    printf("%d: ", which);
    if (step(txns[which])) txns[which] = begin(txns[which]);
    if (!draw(8)) outside();
    if (!is_locking && !draw(20)) indexed();
  }
  rocksdb_transaction_set_name(txns[0], "first", 5, &err);
  print_error("name", &err);
  rocksdb_transaction_set_name(txns[0], "", 0, &err);
  print_error("no name", &err);
  size_t len;
  char* name = rocksdb_transaction_get_name(txns[0], &len);
  if (is_locking) printf("name %.*s\n", (int)len, name);
  rocksdb_free(name);
  if (is_locking) {
    rocksdb_transaction_rollback(txns[0], &err);
    print_error("rollback", &err);
    rocksdb_transaction_put(txns[1], "k07", 3, "prepared", 8, &err);
    print_error("put", &err);
    prepare(txns[1]);
  }
  for (int at = 0; at < 2; at++) rocksdb_transaction_destroy(txns[at]);
  if (is_locking) {
    rocksdb_transactiondb_close(locking);
    locking = rocksdb_transactiondb_open(options, db_options, argv[1], &err);
    print_error("open", &err);
    end_prepared();
  }
  if (is_locking) {
    /* One that is over loses its locks, and does not commit. */
    rocksdb_transaction_options_set_expiration(locking_options, 1);
    rocksdb_transaction_t* late = rocksdb_transaction_begin(locking, writes, locking_options, NULL);
    rocksdb_transaction_put(late, "k01", 3, "late", 4, &err);
    print_error("put", &err);
    for (clock_t end = clock() + CLOCKS_PER_SEC / 200; clock() < end;) {}
    rocksdb_transactiondb_put(locking, writes, "k01", 3, "taken", 5, &err);
    print_error("take", &err);
    rocksdb_transaction_commit(late, &err);
    print_error("late", &err);
    rocksdb_transaction_destroy(late);
  }
  rocksdb_iterator_t* it =
      is_locking ? rocksdb_transactiondb_create_iterator(locking, reads) : rocksdb_create_iterator(base, reads);
  for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
    size_t klen, vlen;
    const char *at = rocksdb_iter_key(it, &klen), *is = rocksdb_iter_value(it, &vlen);
    printf("%.*s = %.*s\n", (int)klen, at, (int)vlen, is);
  }
  rocksdb_iter_destroy(it);
  if (is_locking) rocksdb_transactiondb_close(locking);
  else {
    rocksdb_optimistictransactiondb_close_base_db(base);
    rocksdb_optimistictransactiondb_close(optimistic);
  }
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_transactiondb_options_destroy(db_options);
  rocksdb_transaction_options_destroy(locking_options);
  rocksdb_optimistictransaction_options_destroy(optimistic_options);
  return 0;
}
