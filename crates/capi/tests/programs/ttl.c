/* Databases with a time to live, the same over both libraries. `write DIR` and `read DIR` are for one library after the other.
   What has expired is written with an old time behind it by a database without one, so that nobody waits, and looked at after
   a compaction only: before it RocksDB shows it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static void put(rocksdb_t* db, const char* key, const char* value) {
  rocksdb_put(db, writes, key, strlen(key), value, strlen(value), &err);
  if (err) told("put");
}

static void get(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char* key) {
  size_t len = 0;
  char* value = family ? rocksdb_get_cf(db, reads, family, key, strlen(key), &len, &err)
                       : rocksdb_get(db, reads, key, strlen(key), &len, &err);
  printf("%s = %.*s, %zu bytes\n", key, value ? (int)len : 4, value ? value : "none", len);
  if (err) told("get");
  free(value);
}

static void walk(rocksdb_t* db) {
  rocksdb_iterator_t* all = rocksdb_create_iterator(db, reads);
  for (rocksdb_iter_seek_to_first(all); rocksdb_iter_valid(all); rocksdb_iter_next(all)) {
    size_t key_len, len;
    const char* key = rocksdb_iter_key(all, &key_len);
    const char* value = rocksdb_iter_value(all, &len);
    printf("on %.*s = %.*s\n", (int)key_len, key, (int)len, value);
  }
  for (rocksdb_iter_seek_to_last(all); rocksdb_iter_valid(all); rocksdb_iter_prev(all)) {
    size_t key_len;
    const char* key = rocksdb_iter_key(all, &key_len);
    printf("back %.*s\n", (int)key_len, key);
  }
  rocksdb_iter_get_error(all, &err);
  told("walk");
  rocksdb_iter_destroy(all);
}

static void many(rocksdb_t* db) {
  const char* keys[3] = {"a", "missing", "b"};
  size_t lens[3] = {1, 7, 1}, found_lens[3];
  char *found[3], *errs[3];
  rocksdb_multi_get(db, reads, 3, keys, lens, found, found_lens, errs);
  for (int i = 0; i < 3; i++) {
    printf("many %s = %.*s\n", keys[i], found[i] ? (int)found_lens[i] : 4, found[i] ? found[i] : "none");
    free(found[i]);
    free(errs[i]);
  }
  rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, reads, "b", 1, &err);
  size_t len = 0;
  const char* value = pinned ? rocksdb_pinnableslice_value(pinned, &len) : "none";
  printf("pinned %.*s\n", (int)len, value);
  rocksdb_pinnableslice_destroy(pinned);
}

/* Puts a value with a time behind it into a database without. */
static void raw(rocksdb_t* db, const char* key, const char* value, uint32_t at) {
  char bytes[64];
  size_t len = strlen(value);
  memcpy(bytes, value, len);
  for (int i = 0; i < 4; i++) bytes[len + i] = (char)(at >> (8 * i));
  rocksdb_put(db, writes, key, strlen(key), bytes, len + 4, &err);
}

static void nothing(void* state) { (void)state; }
static const char* drops_name(void* state) { return state ? "drops" : ""; }
/* Drops "drop", makes "change" longer: it is shown values without times. */
static unsigned char drops(void* state, int level, const char* key, size_t key_len, const char* value, size_t len,
                           char** changed, size_t* changed_len, unsigned char* is_changed) {
  (void)state; (void)level; (void)key; (void)key_len;
  if (len == 4 && memcmp(value, "drop", 4) == 0) return 1;
  if (len == 6 && memcmp(value, "change", 6) == 0) {
    *changed = "was changed";
    *changed_len = 11;
    *is_changed = 1;
  }
  return 0;
}

/* Joins with a bar. */
static char* join(const char* existing, size_t existing_len, const char* const* operands, const size_t* lens, int count,
                  size_t* len) {
  size_t all = existing_len + 1;
  for (int i = 0; i < count; i++) all += lens[i] + 1;
  char* made = malloc(all);
  *len = 0;
  if (existing) {
    memcpy(made, existing, existing_len);
    *len = existing_len;
  }
  for (int i = 0; i < count; i++) {
    if (*len > 0) made[(*len)++] = '|';
    memcpy(made + *len, operands[i], lens[i]);
    *len += lens[i];
  }
  return made;
}
static char* full(void* state, const char* key, size_t key_len, const char* existing, size_t existing_len,
                  const char* const* operands, const size_t* lens, int count, unsigned char* done, size_t* len) {
  (void)state; (void)key; (void)key_len;
  *done = 1;
  return join(existing, existing_len, operands, lens, count, len);
}
static char* partial(void* state, const char* key, size_t key_len, const char* const* operands, const size_t* lens, int count,
                     unsigned char* done, size_t* len) {
  (void)state; (void)key; (void)key_len;
  *done = 1;
  return join(NULL, 0, operands, lens, count, len);
}
static void freed(void* state, const char* value, size_t len) { (void)state; (void)len; free((void*)value); }
static const char* joins_name(void* state) { return state ? "joins" : ""; }

static void merge(rocksdb_t* db, const char* key, const char* operand) {
  rocksdb_merge(db, writes, key, strlen(key), operand, strlen(operand), &err);
  if (err) told("merge");
}

static void write_all(const char* dir) {
  rocksdb_t* db = rocksdb_open_with_ttl(options, dir, 1000000, &err);
  told("open");
  put(db, "a", "1");
  put(db, "b", "a value that is longer than the time behind it");
  put(db, "c", "");
  put(db, "drop me", "drop");
  put(db, "change me", "change");
  merge(db, "sum", "one");
  merge(db, "sum", "two");
  rocksdb_flush(db, rocksdb_flushoptions_create(), &err);
  merge(db, "sum", "three");
  put(db, "sum2", "base");
  merge(db, "sum2", "one");
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "batch", 5, "2", 1);
  rocksdb_writebatch_put_log_data(batch, "note", 4);
  rocksdb_writebatch_delete(batch, "a", 1);
  rocksdb_writebatch_merge(batch, "sum2", 4, "two", 3);
  rocksdb_write(db, writes, batch, &err);
  told("batch");
  rocksdb_writebatch_destroy(batch);
  rocksdb_column_family_handle_t* for_long = rocksdb_create_column_family_with_ttl(db, options, "long", 2000000, &err);
  told("family");
  rocksdb_put_cf(db, writes, for_long, "k", 1, "of long", 7, &err);
  rocksdb_column_family_handle_t* for_ever = rocksdb_create_column_family(db, options, "ever", &err);
  told("family");
  rocksdb_put_cf(db, writes, for_ever, "k", 1, "of ever", 7, &err);
  get(db, for_ever, "k");
  get(db, for_long, "k");
  rocksdb_column_family_handle_destroy(for_long);
  rocksdb_column_family_handle_destroy(for_ever);
  walk(db);
  many(db);
  rocksdb_close(db);
}

static void read_all(const char* dir) {
  const char* names[3] = {"default", "long", "ever"};
  const rocksdb_options_t* all[3] = {options, options, options};
  int ttls[3] = {500000, 0, -1};
  rocksdb_column_family_handle_t* families[3];
  rocksdb_t* db = rocksdb_open_column_families_with_ttl(options, dir, 3, names, all, families, ttls, &err);
  told("open families");
  if (!db) return;
  walk(db);
  get(db, families[1], "k");
  get(db, families[2], "k");
  for (int round = 0; round < 2; round++) {
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_compact_range_cf(db, families[1], NULL, 0, NULL, 0);
    walk(db);
  }
  get(db, families[1], "k");
  many(db);
  put(db, "a", "again");
  merge(db, "sum", "more");
  walk(db);
  for (int i = 0; i < 3; i++) rocksdb_column_family_handle_destroy(families[i]);
  rocksdb_close(db);
}

/* Values that were written at other times, and such that are none. */
static void times(const char* dir) {
  uint32_t now = (uint32_t)time(NULL);
  rocksdb_t* db = rocksdb_open(options, dir, &err);
  told("open without");
  raw(db, "a", "new", now);
  raw(db, "b", "a little old", now - 1000);
  raw(db, "c", "old", now - 3000000);
  raw(db, "d", "the oldest", 1368146402);
  rocksdb_close(db);
  db = rocksdb_open_with_ttl(options, dir, 2000, &err);
  told("open with");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  walk(db);
  rocksdb_close(db);
  db = rocksdb_open_with_ttl(options, dir, 500, &err);
  told("open with less");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  walk(db);
  rocksdb_close(db);

  char other[2048];
  snprintf(other, sizeof other, "%s-hostile", dir);
  db = rocksdb_open(options, other, &err);
  raw(db, "a", "new", now);
  raw(db, "b", "too early", 1368146401);
  raw(db, "c", "too late", 0x80000000u);
  put(db, "d", "abc");
  put(db, "e", "");
  rocksdb_close(db);
  db = rocksdb_open_with_ttl(options, other, 0, &err);
  told("open hostile");
  for (const char* key = "abcde"; *key; key++) {
    char name[2] = {*key, 0};
    get(db, NULL, name);
  }
  rocksdb_close(db);
}

int main(int count, char** arguments) {
  const char* what = count > 2 ? arguments[2] : "all";
  const char* dir = arguments[1];
  options = rocksdb_options_create();
  writes = rocksdb_writeoptions_create();
  reads = rocksdb_readoptions_create();
  rocksdb_options_set_create_if_missing(options, 1);
  static char state;
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(&state, nothing, full, partial, freed, joins_name));
  rocksdb_compactionfilter_t* filter = rocksdb_compactionfilter_create(&state, nothing, drops, drops_name);
  rocksdb_options_set_compaction_filter(options, filter);
  if (strcmp(what, "read") != 0) write_all(dir);
  if (strcmp(what, "write") != 0) read_all(dir);
  if (strcmp(what, "all") == 0) {
    char other[1024];
    snprintf(other, sizeof other, "%s-times", dir);
    times(other);
  }
  return 0;
}
