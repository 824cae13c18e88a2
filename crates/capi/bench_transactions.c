/* Times of transactions of one library, microseconds a call.
     bench_transactions DIR KEYS
   Values of 100 bytes, keys of 16 digits. One thread's times are those of its processor. `lock-and-unlock` is what a get for an update costs more than a get, until the
   transaction has ended; `hot-keys` is the time from one commit to the next of two threads whose transactions read and
   write three of ten keys each, and `hot-longest` the longest of them all. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rocksdb/c.h"

static rocksdb_transactiondb_t* db;
static rocksdb_transaction_options_t* plain;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;
static uint64_t keys;
static char value[101];

static uint64_t draw(uint64_t* state, uint64_t below) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (*state >> 20) % below;
}

static void name(char* key, uint64_t number) { snprintf(key, 32, "%016llu", (unsigned long long)number); }

static double clock_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double worked(void) { return clock_of(CLOCK_THREAD_CPUTIME_ID); }

static double now(void) { return clock_of(CLOCK_MONOTONIC); }

static void check(char* err) {
  if (err) fprintf(stderr, "%s\n", err), exit(1);
}

static double transactions_of(uint64_t puts, uint64_t count) {
  uint64_t state = puts;
  char key[32], *err = NULL;
  rocksdb_transaction_t* txn = NULL;
  double begun = worked();
  for (uint64_t at = 0; at < count; at++) {
    txn = rocksdb_transaction_begin(db, writes, plain, txn);
    for (uint64_t put = 0; put < puts; put++) {
      name(key, draw(&state, keys));
      rocksdb_transaction_put(txn, key, 16, value, 100, &err);
    }
    rocksdb_transaction_commit(txn, &err);
    check(err);
  }
  rocksdb_transaction_destroy(txn);
  return (worked() - begun) / (double)count;
}

static double reads_in_transactions(int for_update) {
  enum { EACH = 100 };
  uint64_t state = 5;
  char key[32], *err = NULL;
  double begun = worked();
  for (uint64_t at = 0; at < keys; at += EACH) {
    rocksdb_transaction_t* txn = rocksdb_transaction_begin(db, writes, plain, NULL);
    for (int read = 0; read < EACH; read++) {
      size_t len;
      name(key, draw(&state, keys));
      char* got = for_update ? rocksdb_transaction_get_for_update(txn, reads, key, 16, &len, 1, &err)
                             : rocksdb_transaction_get(txn, reads, key, 16, &len, &err);
      check(err);
      rocksdb_free(got);
    }
    rocksdb_transaction_destroy(txn);
  }
  return (worked() - begun) / (double)keys;
}

/* Whether the transaction came through. */
static int update_hot(rocksdb_transaction_t* txn, uint64_t* state) {
  char key[32], *err = NULL;
  for (int update = 0; update < 3 && !err; update++) {
    size_t len;
    name(key, draw(state, 10));
    rocksdb_free(rocksdb_transaction_get_for_update(txn, reads, key, 16, &len, 1, &err));
    if (!err) rocksdb_transaction_put(txn, key, 16, value, 100, &err);
  }
  if (!err) rocksdb_transaction_commit(txn, &err);
  if (!err) return 1;
  rocksdb_free(err);
  err = NULL;
  rocksdb_transaction_rollback(txn, &err);
  check(err);
  return 0;
}

struct hot {
  uint64_t state;
  double longest;
};

static void* hot(void* argument) {
  struct hot* self = argument;
  rocksdb_transaction_t* txn = NULL;
  for (uint64_t at = 0; at < keys / 4; at++) {
    double begun = now();
    do txn = rocksdb_transaction_begin(db, writes, plain, txn);
    while (!update_hot(txn, &self->state));
    double took = now() - begun;
    if (took > self->longest) self->longest = took;
  }
  rocksdb_transaction_destroy(txn);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  keys = strtoull(argv[2], NULL, 10);
  memset(value, 'v', 100);
  uint64_t state = 1;
  char *err = NULL, key[32];
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_write_buffer_size(options, 256 << 20);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();

  rocksdb_t* base = rocksdb_open(options, argv[1], &err);
  check(err);
  for (int round = 0; round < 2; round++) {
    double begun = worked();
    for (uint64_t at = 0; at < keys; at++) {
      name(key, round ? draw(&state, keys) : at);
      rocksdb_put(base, writes, key, 16, value, 100, &err);
      check(err);
    }
    if (round) printf("put %.3f\n", (worked() - begun) / (double)keys);
  }
  rocksdb_close(base);

  rocksdb_transactiondb_options_t* locking = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_transaction_lock_timeout(locking, 1000);
  plain = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_deadlock_detect(plain, 1);
  db = rocksdb_transactiondb_open(options, locking, argv[1], &err);
  check(err);

  transactions_of(1, keys / 4);
  printf("transaction-of-1 %.3f\n", transactions_of(1, keys));
  printf("transaction-of-10 %.3f\n", transactions_of(10, keys / 10));
  double begun = worked();
  for (uint64_t at = 0; at < keys; at++) {
    name(key, draw(&state, keys));
    rocksdb_transactiondb_put(db, writes, key, 16, value, 100, &err);
    check(err);
  }
  printf("put-with-lock %.3f\n", (worked() - begun) / (double)keys);
  reads_in_transactions(0);
  double get = reads_in_transactions(0), locked = reads_in_transactions(1);
  printf("get %.3f\nget-for-update %.3f\nlock-and-unlock %.3f\n", get, locked, locked - get);

  struct hot threads[2] = {{1, 0}, {2, 0}};
  pthread_t ids[2];
  begun = now();
  for (int at = 0; at < 2; at++) pthread_create(&ids[at], NULL, hot, &threads[at]);
  for (int at = 0; at < 2; at++) pthread_join(ids[at], NULL);
  printf("hot-keys %.3f\n", (now() - begun) / (double)(keys / 4 * 2));
  printf("hot-longest %.3f\n", threads[0].longest > threads[1].longest ? threads[0].longest : threads[1].longest);

  rocksdb_transactiondb_close(db);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_transaction_options_destroy(plain);
  rocksdb_transactiondb_options_destroy(locking);
  rocksdb_options_destroy(options);
  return 0;
}
