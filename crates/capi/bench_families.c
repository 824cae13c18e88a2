/* What many families cost over one library.
     bench_families DIR FAMILIES
   Microseconds: `create-first` and `create-last` are a family's making, of the first and the last fifty; `flush-each` is a
   flush of all of them, a small value in each, over their number; `reopen-each` opening them again. Bytes on the disk, reserved
   space included: `disk-flush` is the most while they are flushed, and `wal-idle` the most of the log while one family is written
   to and the others hold a small value each. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rocksdb/c.h"

enum { EACH = 50, VALUE = 200, BUFFER = 4 << 20, IDLE_BYTES = 64 << 20 };

static const char* dir;
static volatile int done;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void check(char* err) {
  if (err) fprintf(stderr, "%s\n", err), exit(1);
}

/* Bytes on the disk of the files whose names end with `ending`. */
static double on_disk(const char* ending) {
  DIR* listing = opendir(dir);
  struct dirent* entry;
  double bytes = 0;
  while (listing && (entry = readdir(listing))) {
    char path[4096];
    struct stat facts;
    size_t length = strlen(entry->d_name), end = strlen(ending);
    if (length < end || strcmp(entry->d_name + length - end, ending)) continue;
    snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
    if (!stat(path, &facts)) bytes += (double)facts.st_blocks * 512;
  }
  if (listing) closedir(listing);
  return bytes;
}

static void* watch_disk(void* most) {
  while (!done) {
    double bytes = on_disk("");
    if (bytes > *(double*)most) *(double*)most = bytes;
    usleep(2000);
  }
  return NULL;
}

static void put(rocksdb_t* db, rocksdb_writeoptions_t* writes, rocksdb_column_family_handle_t* family, unsigned number, size_t size) {
  char key[32], value[4096], *err = NULL;
  memset(value, 'v', size);
  snprintf(key, sizeof key, "%016u", number);
  rocksdb_put_cf(db, writes, family, key, 16, value, size, &err);
  check(err);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  dir = argv[1];
  size_t count = strtoull(argv[2], NULL, 10);
  char* err = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_write_buffer_size(options, BUFFER);
  rocksdb_options_set_max_open_files(options, 500);
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_t* db = rocksdb_open(options, dir, &err);
  check(err);

  rocksdb_column_family_handle_t** families = calloc(count + 1, sizeof *families);
  const char** names = calloc(count + 1, sizeof *names);
  const rocksdb_options_t** each = calloc(count + 1, sizeof *each);
  double first = 0, last = 0;
  for (size_t at = 0; at < count; at++) {
    char* name = malloc(32);
    snprintf(name, 32, "family%zu", at);
    names[at] = name;
    each[at] = options;
    double begun = now();
    families[at] = rocksdb_create_column_family(db, options, name, &err);
    check(err);
    double took = now() - begun;
    if (at < EACH) first += took;
    if (at + EACH >= count) last += took;
  }
  printf("create-first %.3f\n", first / EACH);
  printf("create-last %.3f\n", last / EACH);

  for (size_t at = 0; at < count; at++) put(db, writes, families[at], 1, VALUE);
  double most = 0;
  pthread_t watcher;
  pthread_create(&watcher, NULL, watch_disk, &most);
  double begun = now();
  for (size_t at = 0; at < count; at++) {
    /* Without a wait but for the last, as a program does that has no flush of several. */
    rocksdb_flushoptions_set_wait(flush, at + 1 == count);
    rocksdb_flush_cf(db, flush, families[at], &err);
    check(err);
  }
  rocksdb_flushoptions_set_wait(flush, 1);
  for (size_t at = 0; at < count; at++) rocksdb_flush_cf(db, flush, families[at], &err), check(err);
  double took = now() - begun;
  done = 1;
  pthread_join(watcher, NULL);
  printf("flush-each %.3f\n", took / (double)count);
  printf("disk-flush %.0f\n", most);

  for (size_t at = 0; at < count; at++) put(db, writes, families[at], 2, VALUE);
  double wal = 0;
  for (unsigned number = 0; number < IDLE_BYTES / 1000; number++) {
    put(db, writes, families[0], number, 1000);
    if (number % 1000 == 0 && on_disk(".log") > wal) wal = on_disk(".log");
  }
  printf("wal-idle %.0f\n", wal);

  for (size_t at = 0; at < count; at++) rocksdb_column_family_handle_destroy(families[at]);
  rocksdb_close(db);
  names[count] = "default";
  each[count] = options;
  begun = now();
  db = rocksdb_open_column_families(options, dir, (int)count + 1, names, each, families, &err);
  check(err);
  printf("reopen-each %.3f\n", (now() - begun) / (double)count);
  for (size_t at = 0; at <= count; at++) rocksdb_column_family_handle_destroy(families[at]);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_flushoptions_destroy(flush);
  return 0;
}
