/* Times of one library, microseconds a call.
     bench DIR KEYS
   Values of 100 bytes, half of which compress; keys of 16 digits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "leveldb/c.h"

static uint64_t state = 1;

static uint64_t draw(uint64_t below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (state >> 20) % below;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double begun;

static void begin(void) { begun = now(); }

static void end(const char* what, uint64_t calls) { printf("%s %.3f\n", what, (now() - begun) * 1e6 / (double)calls); }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  uint64_t keys = strtoull(argv[2], NULL, 10), found = 0, rows = 0;
  char *err = NULL, key[32], value[101];
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_cache_t* cache = leveldb_cache_create_lru(512 << 20);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_write_buffer_size(options, 32 << 20);
  leveldb_filterpolicy_t* bloom = leveldb_filterpolicy_create_bloom(10);
  leveldb_options_set_filter_policy(options, bloom);
  leveldb_t* db = leveldb_open(options, argv[1], &err);
  if (err) return fprintf(stderr, "%s\n", err), 1;
  leveldb_readoptions_t* reads = leveldb_readoptions_create();
  leveldb_writeoptions_t* writes = leveldb_writeoptions_create();

  begin();
  for (uint64_t at = 0; at < keys; at++) {
    snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
    snprintf(value, sizeof value, "%050llu%050d", (unsigned long long)draw(1ull << 40) * 7919, 0);
    leveldb_put(db, writes, key, 16, value, 100, &err);
    if (err) return fprintf(stderr, "%s\n", err), 1;
  }
  end("fillrandom", keys);
  begin();
  for (uint64_t at = 0; at < keys; at += 100) {
    leveldb_writebatch_t* batch = leveldb_writebatch_create();
    for (int row = 0; row < 100; row++) {
      snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
      leveldb_writebatch_put(batch, key, 16, value, 100);
    }
    leveldb_write(db, writes, batch, &err);
    leveldb_writebatch_destroy(batch);
    if (err) return fprintf(stderr, "%s\n", err), 1;
  }
  end("overwrite-batch", keys);
  begin();
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  end("compact", keys);
  for (int round = 0; round < 2; round++) {
    begin();
    for (uint64_t at = 0; at < keys / 2; at++) {
      size_t len;
      snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
      char* got = leveldb_get(db, reads, key, 16, &len, &err);
      if (err) return fprintf(stderr, "%s\n", err), 1;
      found += got != NULL;
      leveldb_free(got);
    }
    if (round) end("readrandom", keys / 2);
  }
  begin();
  leveldb_iterator_t* it = leveldb_create_iterator(db, reads);
  for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) {
    size_t len;
    leveldb_iter_value(it, &len);
    rows++;
  }
  end("readseq", rows);
  begin();
  for (uint64_t at = 0; at < keys / 4; at++) {
    snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
    leveldb_iter_seek(it, key, 16);
  }
  end("seekrandom", keys / 4);
  leveldb_iter_destroy(it);
  fprintf(stderr, "%llu found, %llu rows\n", (unsigned long long)found, (unsigned long long)rows);
  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(writes);
  leveldb_close(db);
  leveldb_options_destroy(options);
  leveldb_filterpolicy_destroy(bloom);
  leveldb_cache_destroy(cache);
  return 0;
}
