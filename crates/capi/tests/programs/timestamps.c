/* Families whose keys end with timestamps, the same over both libraries. `DIR SEED CALLS` makes random calls, with timestamps
   that never go back, as RocksDB asks for; `DIR write` and `DIR read` are for one library after the other. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

#define KEYS 24

static char* err = NULL;
static rocksdb_t* db;
static rocksdb_options_t *options, *timed_options;
static rocksdb_writeoptions_t* writes;
static rocksdb_column_family_handle_t* families[2];
#define PLAIN families[0]
#define TIMED families[1]
static uint64_t now = 1, low = 0, state;

static uint64_t below(uint64_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % bound;
}

/* Tells the kind of an error. */
static void told(const char* what) {
  if (!err) return;
  *strchr(err, ':') = 0;
  printf("%s: %s\n", what, err);
  free(err);
  err = NULL;
}

/* Timestamps are numbers, the lowest byte first. */
static uint64_t number(const char* ts) {
  uint64_t value = 0;
  for (int at = 7; at >= 0; at--) value = value << 8 | (unsigned char)ts[at];
  return value;
}

static const char* stamp(uint64_t value) {
  static char places[4][8];
  static int next = 0;
  char* place = places[next++ % 4];
  for (int at = 0; at < 8; at++) place[at] = (char)(value >> (8 * at));
  return place;
}

static int compare_ts(void* arg, const char* a, size_t alen, const char* b, size_t blen) {
  (void)arg, (void)alen, (void)blen;
  uint64_t x = number(a), y = number(b);
  return x < y ? -1 : x > y;
}

static int compare_without(void* arg, const char* a, size_t alen, unsigned char a_has, const char* b, size_t blen,
                           unsigned char b_has) {
  (void)arg;
  if (a_has) alen -= 8;
  if (b_has) blen -= 8;
  int order = memcmp(a, b, alen < blen ? alen : blen);
  return order ? order : alen < blen ? -1 : alen > blen;
}

static int compare(void* arg, const char* a, size_t alen, const char* b, size_t blen) {
  int order = compare_without(arg, a, alen, 1, b, blen, 1);
  return order ? order : -compare_ts(arg, a + alen - 8, 8, b + blen - 8, 8);
}

static void nothing(void* arg) { (void)arg; }
static const char* name(void* arg) {
  (void)arg;
  return "keys.with.u64";
}

static const char* key(uint64_t n) {
  static char places[4][16];
  static int next = 0;
  char* place = places[next++ % 4];
  sprintf(place, "k%02d%s", (int)n, n % 3 ? "" : "-longer");
  return place;
}

static rocksdb_readoptions_t* at(uint64_t ts) {
  static char place[8];
  memcpy(place, stamp(ts), 8);
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  rocksdb_readoptions_set_timestamp(reads, place, 8);
  return reads;
}

/* What is older than the lowest timestamp has it or none. */
static const char* shown(const char* ts, size_t len) {
  static char place[32];
  if (len != 8) return "no timestamp";
  uint64_t value = number(ts);
  sprintf(place, value < low ? "old" : "%d", (int)value);
  return place;
}

static void put(uint64_t n, uint64_t ts, const char* value) {
  const char* k = key(n);
  rocksdb_put_cf_with_ts(db, writes, TIMED, k, strlen(k), stamp(ts), 8, value, strlen(value), &err);
  told("put");
}

static void drop(uint64_t n, uint64_t ts) {
  const char* k = key(n);
  rocksdb_delete_cf_with_ts(db, writes, TIMED, k, strlen(k), stamp(ts), 8, &err);
  told("delete");
}

static void get(uint64_t n, uint64_t ts) {
  const char* k = key(n);
  rocksdb_readoptions_t* reads = at(ts);
  size_t len = 0, ts_len = 0;
  char* found_ts = NULL;
  char* value = rocksdb_get_cf_with_ts(db, reads, TIMED, k, strlen(k), &len, &found_ts, &ts_len, &err);
  printf("%s at %d = %.*s", k, (int)ts, value ? (int)len : 4, value ? value : "none");
  if (value) printf(" of %s", shown(found_ts, ts_len));
  puts("");
  told("get");
  free(value);
  free(found_ts);
  char* again = rocksdb_get_cf(db, reads, TIMED, k, strlen(k), &len, &err);
  printf("again %.*s\n", again ? (int)len : 4, again ? again : "none");
  told("get");
  free(again);
  rocksdb_readoptions_destroy(reads);
}

static void many(uint64_t ts) {
  enum { COUNT = 6 };
  rocksdb_readoptions_t* reads = at(ts);
  const char* keys[COUNT];
  char copies[COUNT][16];
  size_t lens[COUNT], found_lens[COUNT], ts_lens[COUNT];
  char *found[COUNT], *stamps[COUNT], *errs[COUNT];
  const rocksdb_column_family_handle_t* of[COUNT];
  for (int n = 0; n < COUNT; n++) {
    strcpy(copies[n], key(below(KEYS)));
    keys[n] = copies[n];
    lens[n] = strlen(copies[n]);
    of[n] = TIMED;
  }
  rocksdb_multi_get_cf_with_ts(db, reads, of, COUNT, keys, lens, found, found_lens, stamps, ts_lens, errs);
  for (int n = 0; n < COUNT; n++) {
    printf("%s = %.*s", keys[n], found[n] ? (int)found_lens[n] : 4, found[n] ? found[n] : "none");
    if (found[n]) printf(" of %s", shown(stamps[n], ts_lens[n]));
    puts("");
    err = errs[n];
    told("many");
    free(found[n]);
    free(stamps[n]);
  }
  rocksdb_readoptions_destroy(reads);
}

static void where(const char* what, rocksdb_iterator_t* walk) {
  if (!rocksdb_iter_valid(walk)) {
    printf("%s: nowhere\n", what);
    return;
  }
  size_t key_len, ts_len, len;
  const char* k = rocksdb_iter_key(walk, &key_len);
  const char* ts = rocksdb_iter_timestamp(walk, &ts_len);
  const char* value = rocksdb_iter_value(walk, &len);
  printf("%s: %.*s of %s = %.*s\n", what, (int)key_len, k, shown(ts, ts_len), (int)len, value);
}

static void walk(uint64_t ts) {
  rocksdb_readoptions_t* reads = at(ts);
  char lower[16], upper[16];
  strcpy(lower, key(below(KEYS)));
  strcpy(upper, key(below(KEYS)));
  if (below(2)) rocksdb_readoptions_set_iterate_lower_bound(reads, lower, strlen(lower));
  if (below(2)) rocksdb_readoptions_set_iterate_upper_bound(reads, upper, strlen(upper));
  rocksdb_iterator_t* all = rocksdb_create_iterator_cf(db, reads, TIMED);
  for (rocksdb_iter_seek_to_first(all); rocksdb_iter_valid(all); rocksdb_iter_next(all)) where("on", all);
  for (rocksdb_iter_seek_to_last(all); rocksdb_iter_valid(all); rocksdb_iter_prev(all)) where("back", all);
  for (int round = 0; round < 6; round++) {
    const char* k = key(below(KEYS));
    if (below(2)) {
      rocksdb_iter_seek(all, k, strlen(k));
      where("seek", all);
    } else {
      rocksdb_iter_seek_for_prev(all, k, strlen(k));
      where("seek for prev", all);
    }
    for (int step = 0; step < 4 && rocksdb_iter_valid(all); step++) {
      if (below(2)) {
        rocksdb_iter_next(all);
        where("next", all);
      } else {
        rocksdb_iter_prev(all);
        where("prev", all);
      }
    }
  }
  rocksdb_iter_get_error(all, &err);
  told("walk");
  rocksdb_iter_destroy(all);
  rocksdb_readoptions_destroy(reads);
}

static void batch(void) {
  rocksdb_writebatch_t* made = rocksdb_writebatch_create();
  for (int n = 0; n < 5; n++) {
    const char* k = key(below(KEYS));
    if (below(3)) {
      char value[32];
      sprintf(value, "batch %d %d", (int)now, n);
      rocksdb_writebatch_put_cf_with_ts(made, TIMED, k, strlen(k), stamp(++now), 8, value, strlen(value));
    } else {
      rocksdb_writebatch_delete_cf_with_ts(made, TIMED, k, strlen(k), stamp(++now), 8);
    }
  }
  rocksdb_writebatch_put_cf(made, PLAIN, "beside", 6, "it", 2);
  rocksdb_write(db, writes, made, &err);
  told("batch");
  rocksdb_writebatch_destroy(made);
}

#ifdef DRUMLIN_ROCKSDB_ABI
static size_t bytes_in(void* known, uint32_t family) {
  if (family != rocksdb_column_family_handle_get_id(TIMED)) return 0;
  return *(size_t*)known;
}

static void update(rocksdb_writebatch_t* made, uint64_t at) {
  size_t wrong[] = {4, SIZE_MAX}, right = 8;
  for (int n = 0; n < 2; n++) {
    rocksdb_writebatch_update_timestamps(made, stamp(at), 8, &wrong[n], bytes_in, &err);
    if (!err) printf("a wrong size\n");
    free(err);
    err = NULL;
    rocksdb_write(db, writes, made, &err);
    if (!err) printf("written unstamped\n");
    free(err);
    err = NULL;
  }
  rocksdb_writebatch_update_timestamps(made, stamp(at), 8, &right, bytes_in, &err);
  told("update");
}
#endif

static void show(rocksdb_writebatch_t* made) {
  size_t len;
  const char* data = rocksdb_writebatch_data(made, &len);
  for (size_t at = 0; at < len; at++) printf("%02x", (unsigned char)data[at]);
  printf("\n");
}

/* Records whose timestamp comes later: Debian's RocksDB has no function for it, and gets them once they are known. */
static void batch_later(void) {
  rocksdb_writebatch_t* made = rocksdb_writebatch_create();
  const char* all[6];
  char names[6][16];
  for (int n = 0; n < 6; n++) all[n] = strcpy(names[n], key(below(KEYS)));
  now++;
  for (int stamped = 0; stamped < 2; stamped++) {
    for (int n = 0; n < 6; n++) {
      size_t len = strlen(all[n]);
      if (!stamped) {
        if (n % 3 == 2) rocksdb_writebatch_delete_cf(made, TIMED, all[n], len);
        else rocksdb_writebatch_put_cf(made, TIMED, all[n], len, "later", 5);
      } else if (n % 3 == 2) {
        rocksdb_writebatch_delete_cf_with_ts(made, TIMED, all[n], len, stamp(now), 8);
      } else {
        rocksdb_writebatch_put_cf_with_ts(made, TIMED, all[n], len, stamp(now), 8, "later", 5);
      }
    }
    rocksdb_writebatch_put_cf(made, PLAIN, "beside", 6, "it", 2);
    if (!stamped) {
      show(made);
      rocksdb_write(db, writes, made, &err);
      told("unstamped");
#ifdef DRUMLIN_ROCKSDB_ABI
      update(made, now);
      break;
#else
      /* One that is cleared goes on asking for timestamps. */
      rocksdb_writebatch_destroy(made);
      made = rocksdb_writebatch_create();
#endif
    }
  }
  show(made);
  rocksdb_write(db, writes, made, &err);
  told("stamped");
  rocksdb_writebatch_destroy(made);
}

static void raise_low(void) {
  if (now < 12) return;
  uint64_t next = now - 10;
  rocksdb_increase_full_history_ts_low(db, TIMED, stamp(next), 8, &err);
  told("increase");
  low = next;
  size_t len = 0;
  char* found = rocksdb_get_full_history_ts_low(db, TIMED, &len, &err);
  printf("low %d\n", len == 8 ? (int)number(found) : -1);
  free(found);
  told("low");
  if (below(2)) rocksdb_compact_range_cf(db, TIMED, NULL, 0, NULL, 0);
}

static void mistakes(void) {
  size_t len;
  rocksdb_readoptions_t* without = rocksdb_readoptions_create();
  free(rocksdb_get_cf(db, without, TIMED, "k", 1, &len, &err));
  told("a get without a timestamp");
  rocksdb_put_cf(db, writes, TIMED, "longer than a timestamp", 23, "v", 1, &err);
  told("a put without a timestamp");
  rocksdb_delete_cf(db, writes, TIMED, "longer than a timestamp", 23, &err);
  told("a deletion without a timestamp");
  rocksdb_put_cf_with_ts(db, writes, TIMED, "k", 1, "short", 5, "v", 1, &err);
  told("a short timestamp");
  rocksdb_put_cf_with_ts(db, writes, PLAIN, "k", 1, stamp(1), 8, "v", 1, &err);
  told("a timestamp for a family without");
  rocksdb_readoptions_t* reads = at(now);
  free(rocksdb_get_cf(db, reads, PLAIN, "k", 1, &len, &err));
  told("a get at a timestamp of a family without");
  rocksdb_increase_full_history_ts_low(db, TIMED, "short", 5, &err);
  told("a short lowest timestamp");
  rocksdb_increase_full_history_ts_low(db, PLAIN, stamp(1), 8, &err);
  told("a lowest timestamp of a family without");
  rocksdb_iterator_t* walk = rocksdb_create_iterator_cf(db, without, TIMED);
  rocksdb_iter_seek_to_first(walk);
  printf("valid %d\n", rocksdb_iter_valid(walk));
  rocksdb_iter_get_error(walk, &err);
  told("a walk without a timestamp");
  rocksdb_iter_destroy(walk);
  if (low > 1) {
    rocksdb_increase_full_history_ts_low(db, TIMED, stamp(low - 1), 8, &err);
    told("lowered");
    rocksdb_readoptions_t* early = at(low - 1);
    free(rocksdb_get_cf(db, early, TIMED, "k", 1, &len, &err));
    told("a get below the lowest");
    rocksdb_readoptions_destroy(early);
  }
  rocksdb_readoptions_destroy(reads);
  rocksdb_readoptions_destroy(without);
}

static void open_it(const char* dir) {
  const char* names[2] = {"default", "timed"};
  const rocksdb_options_t* each[2] = {options, timed_options};
  db = rocksdb_open_column_families(options, dir, 2, names, each, families, &err);
  told("open");
  if (!db) exit(1);
}

static void close_it(void) {
  rocksdb_column_family_handle_destroy(PLAIN);
  rocksdb_column_family_handle_destroy(TIMED);
  rocksdb_close(db);
}

static void calls(const char* dir, int count) {
  for (int call = 0; call < count; call++) {
    char value[32];
    sprintf(value, "value %d", call);
    switch (below(16)) {
      case 0: case 1: case 2: case 3: put(below(KEYS), ++now, value); break;
      case 4: case 5: drop(below(KEYS), ++now); break;
      case 6: below(2) ? batch() : batch_later(); break;
      case 7: case 8: get(below(KEYS), low + below(now - low + 2)); break;
      case 9: many(low + below(now - low + 2)); break;
      case 10: case 11: walk(low + below(now - low + 2)); break;
      case 12: mistakes(); break;
      case 13: {
        rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
        rocksdb_flush_cf(db, flush, TIMED, &err);
        told("flush");
        rocksdb_flushoptions_destroy(flush);
        break;
      }
      case 14:
        if (below(2)) rocksdb_compact_range_cf(db, TIMED, NULL, 0, NULL, 0);
        else raise_low();
        break;
      case 15:
        close_it();
        open_it(dir);
        break;
    }
  }
  get(1, now);
  walk(now);
}

/* The history of every key, for one library after the other. */
static void all(void) {
  size_t len = 0;
  char* found = rocksdb_get_full_history_ts_low(db, TIMED, &len, &err);
  low = len == 8 ? number(found) : 0;
  free(found);
  told("low");
  printf("lowest %d\n", (int)low);
  for (uint64_t ts = low; ts < low + 60; ts += 7) {
    walk(ts);
    for (uint64_t n = 0; n < KEYS; n++) get(n, ts);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  timed_options = rocksdb_options_create();
  rocksdb_comparator_t* order =
      rocksdb_comparator_with_ts_create(NULL, nothing, compare, compare_ts, compare_without, name, 8);
  rocksdb_options_set_comparator(timed_options, order);
  writes = rocksdb_writeoptions_create();
  int is_writing = !strcmp(argv[2], "write"), is_reading = !strcmp(argv[2], "read");
  state = 88172645463325252u + (is_writing || is_reading ? 5 : strtoull(argv[2], NULL, 10)) * 7919;
  open_it(argv[1]);
  if (is_writing) {
    calls(argv[1], 300);
  } else if (is_reading) {
    all();
  } else {
    calls(argv[1], atoi(argv[3]));
  }
  close_it();
  rocksdb_options_destroy(options);
  rocksdb_options_destroy(timed_options);
  rocksdb_comparator_destroy(order);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
