/* Files beside the data: LOG and where it is, tables that stay while deletions are disabled, tables that are gone, tables with deletions of ranges.
   The same lines by either library.
     files DIR LOGS */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static char* err;

static void must(const char* what) {
  if (!err) return;
  printf("%s: %s\n", what, err);
  exit(1);
}

/* How many names in `dir` have `part`. */
static int names(const char* dir, const char* part) {
  int count = 0;
  DIR* open = opendir(dir);
  if (!open) return -1;
  for (struct dirent* entry; (entry = readdir(open));) count += strstr(entry->d_name, part) != NULL;
  closedir(open);
  return count;
}

/* Whether LOG has `text`. */
static int tells(const char* dir, const char* text) {
  static char log[1 << 20];
  char path[1000];
  snprintf(path, sizeof path, "%s/LOG", dir);
  FILE* file = fopen(path, "r");
  if (!file) return -1;
  size_t len = fread(log, 1, sizeof log - 1, file);
  log[len] = 0;
  fclose(file);
  return strstr(log, text) != NULL;
}

static rocksdb_t* db;

static void put(const char* key, const char* value) {
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  rocksdb_put(db, writes, key, strlen(key), value, strlen(value), &err);
  must("put");
  rocksdb_writeoptions_destroy(writes);
}

static void flush(void) {
  rocksdb_flushoptions_t* waits = rocksdb_flushoptions_create();
  rocksdb_flush(db, waits, &err);
  must("flush");
  rocksdb_flushoptions_destroy(waits);
}

static void show(void) {
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  rocksdb_iterator_t* rows = rocksdb_create_iterator(db, reads);
  for (rocksdb_iter_seek_to_first(rows); rocksdb_iter_valid(rows); rocksdb_iter_next(rows)) {
    size_t klen, vlen;
    const char* key = rocksdb_iter_key(rows, &klen);
    const char* value = rocksdb_iter_value(rows, &vlen);
    printf(" %.*s=%.*s", (int)klen, key, (int)vlen, value);
  }
  puts("");
  rocksdb_iter_destroy(rows);
  rocksdb_readoptions_destroy(reads);
}

static void logs(rocksdb_options_t* options, const char* dir, const char* other) {
  rocksdb_options_set_keep_log_file_num(options, 3);
  rocksdb_options_set_write_buffer_size(options, 1000003);
  for (int opening = 0; opening < 5; opening++) {
    db = rocksdb_open(options, dir, &err);
    must("open");
    rocksdb_close(db);
    printf("opening %d: %d files\n", opening, names(dir, "LOG"));
  }
  printf("told: %d %d %d\n", tells(dir, "Options.write_buffer_size: 1000003\n"), tells(dir, "  block_size: 4096\n"),
         tells(dir, "Options.create_if_missing: 1\n"));
  rocksdb_options_set_db_log_dir(options, other);
  db = rocksdb_open(options, dir, &err);
  must("open");
  rocksdb_close(db);
  char name[1000];
  size_t len = strlen(dir);
  for (size_t at = 1; at < len; at++) name[at - 1] = strchr("/", dir[at]) ? '_' : dir[at];
  strcpy(name + len - 1, "_LOG");
  printf("elsewhere: %d here, %d there, so named %d\n", names(dir, "LOG"), names(other, "LOG"), names(other, name));
  rocksdb_options_set_db_log_dir(options, "");
}

static void kept(rocksdb_options_t* options, const char* dir) {
  db = rocksdb_open(options, dir, &err);
  must("open");
  rocksdb_disable_file_deletions(db, &err);
  must("disable");
  rocksdb_disable_file_deletions(db, &err);
  must("disable again");
  for (int round = 0; round < 3; round++) {
    put("k1", "one");
    put("k2", "two");
    put("k9", "nine");
    flush();
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  printf("disabled: %d\n", names(dir, ".sst") > 3);
#if DRUMLIN_ROCKSDB_ABI >= 911
  rocksdb_enable_file_deletions(db, &err);
#else
  rocksdb_enable_file_deletions(db, 0, &err);
#endif
  must("enable");
  printf("enabled once: %d\n", names(dir, ".sst") > 3);
#if DRUMLIN_ROCKSDB_ABI >= 911
  rocksdb_enable_file_deletions(db, &err);
  rocksdb_enable_file_deletions(db, &err);
#else
  rocksdb_enable_file_deletions(db, 1, &err);
  rocksdb_enable_file_deletions(db, 0, &err);
#endif
  must("enable again");
  printf("enabled: %d\n", names(dir, ".sst"));
}

/* Calls return when the files that they made superfluous are gone. */
static void gone(rocksdb_options_t* options, const char* dir) {
  for (int round = 0; round < 10; round++) {
    put("k1", "one");
    flush();
    put("k2", "two");
    flush();
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    printf("compacted: %d\n", names(dir, ".sst"));
  }
  rocksdb_flushoptions_t* waits = rocksdb_flushoptions_create();
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  for (int round = 0; round < 10; round++) {
    rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, options, "passing", &err);
    must("create a family");
    rocksdb_put_cf(db, writes, family, "k", 1, "v", 1, &err);
    rocksdb_flush_cf(db, waits, family, &err);
    rocksdb_drop_column_family(db, family, &err);
    must("drop a family");
    printf("dropped: %d with its handle", names(dir, ".sst"));
    rocksdb_column_family_handle_destroy(family);
    printf(", %d without\n", names(dir, ".sst"));
  }
  rocksdb_writeoptions_destroy(writes);
  rocksdb_flushoptions_destroy(waits);
  rocksdb_delete_file_in_range(db, "k0", 2, "k99", 3, &err);
  must("delete files in a range");
  printf("deleted in range: %d\n", names(dir, ".sst"));
  put("k1", "one");
  put("k2", "two");
  put("k9", "nine");
}

static void ranges(rocksdb_options_t* options, const char* path) {
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_delete_range(writer, "a", 1, "b", 1, &err);
  printf("not open: %.16s\n", err);
  free(err), err = NULL;
  rocksdb_sstfilewriter_open(writer, path, &err);
  must("open a table");
  rocksdb_sstfilewriter_delete_range(writer, "k5", 2, "k8", 2, &err);
  rocksdb_sstfilewriter_put(writer, "k2", 2, "new", 3, &err);
  must("put into a table");
  rocksdb_sstfilewriter_delete_range(writer, "k1", 2, "k3", 2, &err);
  rocksdb_sstfilewriter_delete_range(writer, "k0", 2, "k2", 2, &err);
  rocksdb_sstfilewriter_delete_range(writer, "k0", 2, "k0", 2, &err);
  must("delete ranges");
  rocksdb_sstfilewriter_finish(writer, &err);
  must("finish");
  uint64_t bytes = 0;
  rocksdb_sstfilewriter_file_size(writer, &bytes);
  printf("bytes: %d\n", bytes > 500);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);

  put("k7", "seven");
  show();
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  const char* paths[] = {path};
  rocksdb_ingest_external_file(db, paths, 1, how, &err);
  must("ingest");
  show();
  put("k1", "again");
  flush();
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  show();
  rocksdb_ingestexternalfileoptions_destroy(how);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  logs(options, argv[1], argv[2]);
  kept(options, argv[1]);
  gone(options, argv[1]);
  char path[1000];
  snprintf(path, sizeof path, "%s.sst", argv[1]);
  ranges(options, path);
  printf("flushes told: %d\n", tells(argv[1], "lush"));
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  return 0;
}
