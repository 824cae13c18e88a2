/* Times of a queue over one library, microseconds of the processor a call.
     bench_queue DIR KEYS
   All keys are put and taken from the front, in memory still. `first-seek` is the first seek to the front then,
   `next-seek` each of a thousand more, with one key taken and one put in between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rocksdb/c.h"

static rocksdb_t* db;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;

static double worked(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void check(char* err) {
  if (err) fprintf(stderr, "%s\n", err), exit(1);
}

static void put(uint64_t number) {
  char key[32], *err = NULL;
  snprintf(key, sizeof key, "%016llu", (unsigned long long)number);
  rocksdb_put(db, writes, key, 16, "a job of some twenty bytes", 26, &err);
  check(err);
}

static void take(uint64_t number) {
  char key[32], *err = NULL;
  snprintf(key, sizeof key, "%016llu", (unsigned long long)number);
  rocksdb_delete(db, writes, key, 16, &err);
  check(err);
}

/* The time of a seek, which has to find `expected`. */
static double seek(uint64_t expected) {
  char key[32];
  size_t len;
  snprintf(key, sizeof key, "%016llu", (unsigned long long)expected);
  double begun = worked();
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek_to_first(it);
  double took = worked() - begun;
  if (!rocksdb_iter_valid(it) || memcmp(rocksdb_iter_key(it, &len), key, 16)) fprintf(stderr, "another key\n"), exit(1);
  rocksdb_iter_destroy(it);
  return took;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  uint64_t keys = strtoull(argv[2], NULL, 10);
  char* err = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_write_buffer_size(options, 256 << 20);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  db = rocksdb_open(options, argv[1], &err);
  check(err);
  for (uint64_t number = 0; number < keys + 10; number++) put(number);
  for (uint64_t number = 0; number < keys; number++) take(number);
  printf("first-seek %.3f\n", seek(keys));
  double all = 0;
  for (uint64_t round = 0; round < 1000; round++) {
    put(keys + 10 + round);
    take(keys + round);
    all += seek(keys + round + 1);
  }
  printf("next-seek %.3f\n", all / 1000);
  rocksdb_close(db);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_options_destroy(options);
  return 0;
}
