/* Times of one library, microseconds a call.
     bench DIR KEYS
   Values of 100 bytes, half of which compress; keys of 16 digits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rocksdb/c.h"

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
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(512 << 20);
  rocksdb_block_based_table_options_t* blocks = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(blocks, cache);
  rocksdb_block_based_options_set_filter_policy(blocks, rocksdb_filterpolicy_create_bloom(10));
  rocksdb_options_set_block_based_table_factory(options, blocks);
  rocksdb_options_increase_parallelism(options, 2);
  rocksdb_options_set_write_buffer_size(options, 32 << 20);
  rocksdb_t* db = rocksdb_open(options, argv[1], &err);
  if (err) return fprintf(stderr, "%s\n", err), 1;
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();

  begin();
  for (uint64_t at = 0; at < keys; at++) {
    snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
    snprintf(value, sizeof value, "%050llu%050d", (unsigned long long)draw(1ull << 40) * 7919, 0);
    rocksdb_put(db, writes, key, 16, value, 100, &err);
    if (err) return fprintf(stderr, "%s\n", err), 1;
  }
  end("fillrandom", keys);
  begin();
  for (uint64_t at = 0; at < keys; at += 100) {
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    for (int row = 0; row < 100; row++) {
      snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
      rocksdb_writebatch_put(batch, key, 16, value, 100);
    }
    rocksdb_write(db, writes, batch, &err);
    rocksdb_writebatch_destroy(batch);
    if (err) return fprintf(stderr, "%s\n", err), 1;
  }
  end("overwrite-batch", keys);
  begin();
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  end("compact", keys);
  for (int round = 0; round < 2; round++) {
    begin();
    for (uint64_t at = 0; at < keys / 2; at++) {
      size_t len;
      snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
      char* got = rocksdb_get(db, reads, key, 16, &len, &err);
      if (err) return fprintf(stderr, "%s\n", err), 1;
      found += got != NULL;
      rocksdb_free(got);
    }
    if (round) end("readrandom", keys / 2);
  }
  begin();
  for (uint64_t at = 0; at < keys / 2; at++) {
    size_t len;
    snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
    rocksdb_pinnableslice_t* got = rocksdb_get_pinned(db, reads, key, 16, &err);
    if (err) return fprintf(stderr, "%s\n", err), 1;
    found += rocksdb_pinnableslice_value(got, &len) != NULL;
    rocksdb_pinnableslice_destroy(got);
  }
  end("readpinned", keys / 2);
  begin();
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, reads);
  for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
    size_t len;
    rocksdb_iter_value(it, &len);
    rows++;
  }
  end("readseq", rows);
  begin();
  for (uint64_t at = 0; at < keys / 4; at++) {
    snprintf(key, sizeof key, "%016llu", (unsigned long long)draw(keys));
    rocksdb_iter_seek(it, key, 16);
  }
  end("seekrandom", keys / 4);
  begin();
  for (uint64_t at = 0; at < keys / 4; at++) {
    char limit[32];
    uint64_t from = draw(keys), bytes = 0;
    snprintf(key, sizeof key, "%016llu", (unsigned long long)from);
    snprintf(limit, sizeof limit, "%016llu", (unsigned long long)(from + 1 + draw(keys / 10)));
    const char *from_key = key, *to_key = limit;
    size_t lens[] = {16, 16};
    rocksdb_approximate_sizes(db, 1, &from_key, lens, &to_key, lens + 1, &bytes, &err);
    if (err) return fprintf(stderr, "%s\n", err), 1;
  }
  end("approximate-size", keys / 4);
  rocksdb_iter_destroy(it);
  fprintf(stderr, "%llu found, %llu rows\n", (unsigned long long)found, (unsigned long long)rows);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_block_based_options_destroy(blocks);
  rocksdb_cache_destroy(cache);
  return 0;
}
