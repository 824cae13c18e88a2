/* What a thread's reads are counted as: exact numbers where both libraries must count alike, else whether there are any. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

#define KEYS 2000

static char* err = NULL;
static rocksdb_t* db;
static rocksdb_readoptions_t* reads;
static rocksdb_perfcontext_t* context;

static void check(const char* what) {
  if (err) printf("%s: %s\n", what, err), exit(1);
}

static uint64_t metric(int number) { return rocksdb_perfcontext_metric(context, number); }

static void exact(const char* when) {
  printf("%s: get %" PRIu64 " multi %" PRIu64 " walk %" PRIu64 " memtables %" PRIu64 "\n", when,
         metric(rocksdb_get_read_bytes), metric(rocksdb_multiget_read_bytes), metric(rocksdb_iter_read_bytes),
         metric(rocksdb_get_from_memtable_count));
}

static void key_of(char* key, int at) { sprintf(key, "key%06d", at); }

static void get(int at) {
  char key[16];
  key_of(key, at);
  size_t len;
  free(rocksdb_get(db, reads, key, strlen(key), &len, &err));
  check("get");
}

static void read_all(const char* when) {
  rocksdb_perfcontext_reset(context);
  for (int at = 0; at < KEYS; at += 7) get(at);
  exact(when);
  const char* keys[2] = {"key000001", "key000002"};
  size_t lens[2] = {9, 9}, value_lens[2];
  char *values[2], *errs[2];
  rocksdb_multi_get(db, reads, 2, keys, lens, values, value_lens, errs);
  free(values[0]), free(values[1]);
  exact("several");
  rocksdb_iterator_t* walk = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek(walk, "key0001", 7);
  for (int at = 0; at < 50 && rocksdb_iter_valid(walk); at++) rocksdb_iter_next(walk);
  rocksdb_iter_destroy(walk);
  exact("a walk");
}

static void* elsewhere(void* unused) {
  get(5);
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_block_based_table_options_t* blocks = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_filter_policy(blocks, rocksdb_filterpolicy_create_bloom_full(10));
  rocksdb_options_set_block_based_table_factory(options, blocks);
  db = rocksdb_open(options, argv[1], &err);
  check("open");
  reads = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  rocksdb_set_perf_level(rocksdb_enable_count);
  context = rocksdb_perfcontext_create();
  rocksdb_perfcontext_reset(context);
  char* report = rocksdb_perfcontext_report(context, 0);
  puts(report);
  free(report);
  report = rocksdb_perfcontext_report(context, 1);
  printf("without zeros: '%s'\n", report);
  free(report);

  get(1);
  exact("an empty database");
  char key[16], value[100];
  memset(value, 'v', sizeof value);
  for (int at = 0; at < KEYS; at++) {
    key_of(key, at);
    rocksdb_put(db, writes, key, strlen(key), value, sizeof value, &err);
  }
  check("put");
  read_all("in a memtable");
  printf("sought: %" PRIu64 " %" PRIu64 "\n", metric(rocksdb_seek_on_memtable_count), metric(rocksdb_seek_child_seek_count));
  rocksdb_set_perf_level(rocksdb_enable_time);
  rocksdb_perfcontext_reset(context);
  rocksdb_put(db, writes, "zz", 2, "1", 1, &err);
  get(3);
  printf("times: %d %d %d %d\n", metric(rocksdb_write_wal_time) > 0, metric(rocksdb_write_memtable_time) > 0,
         metric(rocksdb_get_from_memtable_time) > 0, metric(rocksdb_block_read_time) > 0);
  rocksdb_set_perf_level(rocksdb_enable_count);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  rocksdb_close(db);
  db = rocksdb_open(options, argv[1], &err);
  check("open again");
  read_all("in a table");
  printf("blocks: %d %d %d\n", metric(rocksdb_block_read_count) > 0, metric(rocksdb_block_read_byte) > 1000,
         metric(rocksdb_block_read_time) > 0);
  rocksdb_perfcontext_reset(context);
  for (int at = 0; at < KEYS; at += 7) get(at);
  printf("cached: %d %" PRIu64 "\n", metric(rocksdb_block_cache_hit_count) > 0, metric(rocksdb_block_read_count));
  printf("filters: %d %" PRIu64 "\n", metric(rocksdb_bloom_sst_hit_count) >= KEYS / 7, metric(rocksdb_bloom_sst_miss_count));
  size_t len;
  for (int at = 0; at < 100; at++) {
    key_of(key, at);
    key[7] = 'x';
    free(rocksdb_get(db, reads, key, strlen(key), &len, &err));
  }
  printf("of other keys: %d\n", metric(rocksdb_bloom_sst_miss_count) > 90);
  rocksdb_perfcontext_reset(context);
  pthread_t thread;
  pthread_create(&thread, NULL, elsewhere, NULL);
  pthread_join(thread, NULL);
  exact("another thread's");
  rocksdb_set_perf_level(rocksdb_disable);
  get(3);
  exact("off");
  rocksdb_perfcontext_destroy(context);
  rocksdb_close(db);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_readoptions_destroy(reads);
  rocksdb_block_based_options_destroy(blocks);
  rocksdb_options_destroy(options);
  return 0;
}
