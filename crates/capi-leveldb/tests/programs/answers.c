/* Random calls of every function, and what they answer, in lines. By the same seed the same lines, whatever library serves.
     answers DIR SEED CALLS
   Keys are few, so that most calls meet earlier ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leveldb/c.h"

static uint64_t state;

static uint32_t draw(uint32_t below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(state >> 33) % below;
}

static size_t key(char* to) { return (size_t)sprintf(to, "key%03u", draw(300)); }

static size_t value(char* to) {
  size_t len = draw(10) ? draw(100) : draw(5000);
  for (size_t at = 0; at < len; at++) to[at] = (char)('a' + draw(26));
  return len;
}

/* The part of an error that programs branch on. */
static void print_error(const char* what, char** err) {
  if (*err) {
    printf("%s: %.*s\n", what, (int)strcspn(*err, ":"), *err);
    leveldb_free(*err);
    *err = NULL;
  }
}

static void print_bytes(const char* what, const char* bytes, size_t len) {
  uint32_t sum = 0;
  for (size_t at = 0; at < len; at++) sum = sum * 31 + (unsigned char)bytes[at];
  printf("%s %zu %08x\n", what, len, sum);
}

static void get(leveldb_t* db, const leveldb_readoptions_t* reads) {
  char k[32], *err = NULL;
  size_t klen = key(k), vlen = 12345;
  char* found = leveldb_get(db, reads, k, klen, &vlen, &err);
  print_error("get", &err);
  if (found) print_bytes(k, found, vlen);
  else printf("%s is not there, %zu\n", k, vlen);
  leveldb_free(found);
}

static void walk(leveldb_t* db, const leveldb_readoptions_t* reads) {
  char k[32], *err = NULL;
  leveldb_iterator_t* it = leveldb_create_iterator(db, reads);
  printf("new %d\n", leveldb_iter_valid(it));
  switch (draw(3)) {
    case 0: leveldb_iter_seek_to_first(it); break;
    case 1: leveldb_iter_seek_to_last(it); break;
    default: leveldb_iter_seek(it, k, key(k));
  }
  for (int left = (int)draw(30); left && leveldb_iter_valid(it); left--) {
    size_t klen, vlen;
    const char* at = leveldb_iter_key(it, &klen);
    printf("%.*s ", (int)klen, at);
    at = leveldb_iter_value(it, &vlen);
    print_bytes("=", at, vlen);
    if (draw(3)) leveldb_iter_next(it);
    else leveldb_iter_prev(it);
  }
  printf("then %d\n", leveldb_iter_valid(it));
  leveldb_iter_get_error(it, &err);
  print_error("walk", &err);
  leveldb_iter_destroy(it);
}

static void print_put(void* s, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)s;
  printf("put %.*s ", (int)klen, k);
  print_bytes("=", v, vlen);
}

static void print_deleted(void* s, const char* k, size_t klen) {
  (void)s;
  printf("delete %.*s\n", (int)klen, k);
}

static void fill(leveldb_writebatch_t* batch, char* v) {
  char k[32];
  for (int left = (int)draw(10); left; left--) {
    if (draw(3)) {
      size_t klen = key(k), vlen = value(v);
      leveldb_writebatch_put(batch, k, klen, v, vlen);
    } else {
      leveldb_writebatch_delete(batch, k, key(k));
    }
  }
}

static void write_batch(leveldb_t* db, const leveldb_writeoptions_t* writes, char* v) {
  char* err = NULL;
  leveldb_writebatch_t *batch = leveldb_writebatch_create(), *more = leveldb_writebatch_create();
  fill(batch, v);
  if (!draw(5)) leveldb_writebatch_clear(batch);
  fill(more, v);
  leveldb_writebatch_append(batch, more);
  leveldb_writebatch_destroy(more);
  leveldb_write(db, writes, batch, &err);
  print_error("write", &err);
  leveldb_writebatch_iterate(batch, NULL, print_put, print_deleted);
  if (!draw(3)) leveldb_write(db, writes, batch, &err);
  print_error("write again", &err);
  leveldb_writebatch_destroy(batch);
}

/* Backwards, by bytes. */
static int compare(void* s, const char* a, size_t alen, const char* b, size_t blen) {
  (void)s;
  int order = memcmp(a, b, alen < blen ? alen : blen);
  if (order == 0) order = alen < blen ? -1 : alen > blen;
  return -order;
}

static const char* name(void* s) { return (const char*)s; }

static void destroyed(void* s) { printf("the order %s is destroyed\n", (char*)s); }

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* dir = argv[1];
  state = strtoull(argv[2], NULL, 10);
  static char v[8192];
  char k[32], *err = NULL;
  int backwards = (int)draw(2);
  leveldb_comparator_t* order = leveldb_comparator_create("backwards", destroyed, compare, name);
  leveldb_filterpolicy_t* bloom = leveldb_filterpolicy_create_bloom(10);
  leveldb_cache_t* cache = leveldb_cache_create_lru(1 << 20);
  leveldb_env_t* env = leveldb_create_default_env();
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_env(options, env);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_write_buffer_size(options, 64 << 10);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 4);
  leveldb_options_set_max_open_files(options, 100);
  leveldb_options_set_max_file_size(options, 1 << 20);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_compression(options, draw(2) ? leveldb_snappy_compression : leveldb_no_compression);
  if (backwards) leveldb_options_set_comparator(options, order);
  if (draw(2)) leveldb_options_set_filter_policy(options, bloom);
  leveldb_readoptions_t* reads = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(reads, 1);
  leveldb_readoptions_set_fill_cache(reads, (uint8_t)draw(2));
  leveldb_writeoptions_t* writes = leveldb_writeoptions_create();

  leveldb_t* db = leveldb_open(options, dir, &err);
  printf("open without one: %d\n", db != NULL);
  print_error("open", &err);
  leveldb_options_set_create_if_missing(options, 1);
  db = leveldb_open(options, dir, &err);
  print_error("open", &err);
  leveldb_t* second = leveldb_open(options, dir, &err);
  printf("open twice: %d\n", second != NULL);
  print_error("open", &err);

  const leveldb_snapshot_t* snapshot = NULL;
  for (int left = atoi(argv[3]); left; left--) {
    switch (draw(12)) {
      case 0: case 1: case 2: {
        size_t klen = key(k), vlen = value(v);
        leveldb_writeoptions_set_sync(writes, !draw(20));
        leveldb_put(db, writes, k, klen, v, vlen, &err);
        print_error("put", &err);
        break;
      }
      case 3: leveldb_delete(db, writes, k, key(k), &err); print_error("delete", &err); break;
      case 4: write_batch(db, writes, v); break;
      case 5: case 6: case 7: get(db, reads); break;
      case 8: walk(db, reads); break;
      case 9:
        leveldb_readoptions_set_snapshot(reads, NULL);
        if (snapshot) leveldb_release_snapshot(db, snapshot);
        snapshot = draw(2) ? leveldb_create_snapshot(db) : NULL;
        leveldb_readoptions_set_snapshot(reads, snapshot);
        break;
      case 10:
        if (!draw(8)) leveldb_compact_range(db, NULL, 0, NULL, 0);
        else if (!draw(8)) leveldb_compact_range(db, "key1", 4, "key2", 4);
        break;
      default:
        if (draw(15)) break;
        leveldb_readoptions_set_snapshot(reads, NULL);
        if (snapshot) leveldb_release_snapshot(db, snapshot);
        snapshot = NULL;
        leveldb_close(db);
        if (!draw(4)) leveldb_repair_db(options, dir, &err);
        print_error("repair", &err);
        db = leveldb_open(options, dir, &err);
        print_error("open", &err);
    }
  }
  char* property = leveldb_property_value(db, "leveldb.num-files-at-level0");
  printf("level 0 is told: %d\n", property != NULL && property[0] >= '0' && property[0] <= '9');
  leveldb_free(property);
  const char* names[] = {"leveldb.stats", "leveldb.sstables", "leveldb.approximate-memory-usage", "leveldb.other",
                         "stats", "leveldb.num-files-at-level7"};
  for (int at = 0; at < 6; at++) {
    property = leveldb_property_value(db, names[at]);
    printf("%s is told: %d\n", names[at], property != NULL);
    leveldb_free(property);
  }
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  const char *from[] = {"a", backwards ? "z" : "key", "x"}, *to[] = {"a", backwards ? "a" : "z", "x"};
  size_t lens[] = {1, backwards ? 1 : 3, 1}, tolens[] = {1, 1, 1};
  uint64_t sizes[3];
  leveldb_approximate_sizes(db, 3, from, lens, to, tolens, sizes);
  printf("sizes: %d %d %d\n", sizes[0] > 0, sizes[1] > 0, sizes[2] > 0);
  if (snapshot) leveldb_release_snapshot(db, snapshot);
  leveldb_readoptions_set_snapshot(reads, NULL);
  leveldb_iterator_t* it = leveldb_create_iterator(db, reads);
  for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) {
    size_t klen, vlen;
    const char *at = leveldb_iter_key(it, &klen), *is = leveldb_iter_value(it, &vlen);
    printf("%.*s ", (int)klen, at);
    print_bytes("=", is, vlen);
  }
  leveldb_iter_destroy(it);
  leveldb_close(db);

  leveldb_options_set_error_if_exists(options, 1);
  db = leveldb_open(options, dir, &err);
  printf("open one that is there: %d\n", db != NULL);
  print_error("open", &err);
  leveldb_options_set_error_if_exists(options, 0);
  leveldb_options_set_comparator(options, backwards ? NULL : order);
  leveldb_t* other = backwards ? NULL : leveldb_open(options, dir, &err);
  printf("open in another order: %d\n", other != NULL);
  print_error("open", &err);
  leveldb_options_set_comparator(options, backwards ? order : NULL);

  leveldb_options_destroy(options);
  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(writes);
  leveldb_cache_destroy(cache);
  leveldb_filterpolicy_destroy(bloom);
  leveldb_comparator_destroy(order);
  leveldb_env_destroy(env);
  return 0;
}
