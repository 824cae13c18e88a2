/* Over a directory of rows.c: copies the files that the database names, or compacts tables by their names.
     chosen copy DIR TARGET | compact DIR */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rocksdb/c.h"

static char* err = NULL;
static rocksdb_t* db;
static rocksdb_column_family_handle_t* families[2];

/* Tells the error, if there is one, up to its first colon. */
static void told(const char* what) {
  if (err) *strchr(err, ':') = 0;
  printf("%s: %s\n", what, err ? err : "ok");
  free(err);
  err = NULL;
}

static int copy(const char* from, const char* to, size_t bytes, int may_be_longer) {
  char buffer[1 << 16];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  if (!in || !out) return 0;
  while (bytes > 0) {
    size_t read = fread(buffer, 1, bytes < sizeof buffer ? bytes : sizeof buffer, in);
    if (read == 0) return 0;
    fwrite(buffer, 1, read, out);
    bytes -= read;
  }
  int more = fgetc(in) != EOF;
  fclose(in);
  fclose(out);
  return may_be_longer || !more;
}

static rocksdb_livefiles_storage_info_t* info_of(uint64_t flush_from, int checksums) {
  rocksdb_livefiles_storage_info_options_t* asked = rocksdb_livefiles_storage_info_options_create();
  rocksdb_livefiles_storage_info_options_set_wal_size_for_flush(asked, flush_from);
  rocksdb_livefiles_storage_info_options_set_include_checksum_info(asked, checksums);
  rocksdb_livefiles_storage_info_t* info = rocksdb_get_livefiles_storage_info(db, asked, &err);
  rocksdb_livefiles_storage_info_options_destroy(asked);
  return info;
}

static uint64_t wal_bytes(const rocksdb_livefiles_storage_info_t* info) {
  uint64_t bytes = 0;
  for (size_t at = 0; at < rocksdb_livefiles_storage_info_count(info); at++)
    if (rocksdb_livefiles_storage_info_file_type(info, at) == 0) bytes += rocksdb_livefiles_storage_info_size(info, at);
  return bytes;
}

/* The WAL is copied, too: what is written afterwards is not in the copy. */
static void copy_all(const char* dir, const char* target) {
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  uint64_t one = 1;
  rocksdb_put_cf(db, writes, families[0], "row9999998", 10, "value 69999986 of row 9999998", 29, &err);
  rocksdb_merge_cf(db, writes, families[0], "count", 5, (char*)&one, 8, &err);
  rocksdb_disable_file_deletions(db, &err);
  rocksdb_livefiles_storage_info_t* info = info_of(UINT64_MAX, 1);
  told("files");
  rocksdb_put_cf(db, writes, families[0], "row9999999", 10, "not in the copy", 15, &err);
  rocksdb_flush_cf(db, rocksdb_flushoptions_create(), families[0], &err);
  rocksdb_compact_range_cf(db, families[0], NULL, 0, NULL, 0);
  told("more");
  mkdir(target, 0700);
  int kinds[11] = {0}, sound = 1;
  size_t count = rocksdb_livefiles_storage_info_count(info);
  for (size_t at = 0; at < count; at++) {
    const char* name = rocksdb_livefiles_storage_info_relative_filename(info, at);
    const char* place = rocksdb_livefiles_storage_info_directory(info, at);
    uint64_t size = rocksdb_livefiles_storage_info_size(info, at);
    int kind = rocksdb_livefiles_storage_info_file_type(info, at);
    int trims = rocksdb_livefiles_storage_info_trim_to_size(info, at);
    char from[4096], to[4096], number[32];
    snprintf(from, sizeof from, "%s/%s", place, name);
    snprintf(to, sizeof to, "%s/%s", target, name);
    kinds[kind]++;
    snprintf(number, sizeof number, "%06" PRIu64, rocksdb_livefiles_storage_info_file_number(info, at));
    sound &= strcmp(place, dir) == 0 && (kind == 4 || strstr(name, number) != NULL);
    sound &= strcmp(rocksdb_livefiles_storage_info_file_checksum_func_name(info, at), "Unknown") == 0;
    sound &= *rocksdb_livefiles_storage_info_file_checksum(info, at) == 0;
    sound &= rocksdb_livefiles_storage_info_temperature(info, at) == 0;
    size_t len;
    const char* contents = rocksdb_livefiles_storage_info_replacement_contents(info, at, &len);
    if (len > 0) {
      FILE* out = fopen(to, "wb");
      sound &= out && fwrite(contents, 1, len, out) == len && len == size;
      fclose(out);
    } else if (!copy(from, to, size, trims)) {
      sound = 0;
    }
  }
  printf("WAL %d, tables %d, MANIFEST %d, CURRENT %d, OPTIONS %d\n", kinds[0] > 0, kinds[2] > 0, kinds[3], kinds[4], kinds[9]);
  printf("sound: %d, past the end: %d %d\n", sound, rocksdb_livefiles_storage_info_directory(info, count) == NULL,
         rocksdb_livefiles_storage_info_size(info, count) == 0);
  printf("bytes of the WAL: %d\n", wal_bytes(info) > 0);
  rocksdb_livefiles_storage_info_destroy(info);
  rocksdb_enable_file_deletions(db, 0, &err);
  told("deletions");
  rocksdb_put_cf(db, writes, families[0], "row9999999", 10, "not in the copy", 15, &err);
  info = info_of(1 << 20, 0);
  printf("little is not flushed: %d\n", wal_bytes(info) > 0);
  printf("no checksums: %d\n", *rocksdb_livefiles_storage_info_file_checksum_func_name(info, 0) == 0);
  rocksdb_livefiles_storage_info_destroy(info);
  info = rocksdb_get_livefiles_storage_info(db, NULL, &err);
  printf("flushed: %d\n", wal_bytes(info) == 0);
  told("no options");
  rocksdb_livefiles_storage_info_destroy(info);
  rocksdb_writeoptions_destroy(writes);
}

static int level_of(const char* name) {
  rocksdb_livefiles_t const* tables = rocksdb_livefiles(db);
  int level = -1;
  for (int at = 0; at < rocksdb_livefiles_count(tables); at++)
    if (strstr(name, rocksdb_livefiles_name(tables, at))) level = rocksdb_livefiles_level(tables, at);
  rocksdb_livefiles_destroy(tables);
  return level;
}

static void compact(void) {
  rocksdb_livefiles_t const* tables = rocksdb_livefiles(db);
  const char* names[64];
  size_t count = 0;
  for (int at = 0; at < rocksdb_livefiles_count(tables) && count < 64; at++)
    if (!strcmp(rocksdb_livefiles_column_family_name(tables, at), "odd")) names[count++] = rocksdb_livefiles_name(tables, at);
  printf("tables: %d\n", count > 1);

  rocksdb_compaction_options_t* options = rocksdb_compaction_options_create();
  unsigned char* canceled = rocksdb_compaction_options_canceled_create();
  rocksdb_compaction_options_set_canceled(options, canceled);
  rocksdb_compaction_options_canceled_set(canceled, 1);
  char** outputs = NULL;
  size_t made = 99;
  rocksdb_compact_files_cf(db, families[1], options, names, count, 3, 0, &outputs, &made, NULL, &err);
  told("canceled");
  printf("nothing is made: %d\n", outputs == NULL && made == 99);
  rocksdb_compaction_options_canceled_set(canceled, 0);
  const char* none[] = {"/999999.sst"};
  rocksdb_compact_files_cf(db, families[1], options, none, 1, 3, 0, NULL, NULL, NULL, &err);
  told("no such table");
  rocksdb_compact_files(db, options, names, count, 3, 0, NULL, NULL, NULL, &err);
  told("of another family");
  rocksdb_compact_files_cf(db, families[1], options, names, count, -1, 0, NULL, NULL, NULL, &err);
  told("no level");
  rocksdb_compact_files_cf(db, families[1], options, names, count, 3, 1, NULL, NULL, NULL, &err);
  told("no path");

  rocksdb_compactionjobinfo_t* info = rocksdb_compactionjobinfo_create();
  rocksdb_compact_files_cf(db, families[1], options, names, count, 3, 0, &outputs, &made, info, &err);
  told("compacted");
  size_t len;
  const char* family = rocksdb_compactionjobinfo_cf_name(info, &len);
  printf("one table: %d, of %.*s, in level %d\n", made == 1, (int)len, family, made ? level_of(outputs[0]) : -1);
  const char* path = rocksdb_compactionjobinfo_output_file_at(info, 0, &len);
  printf("told of: %d %d %d %d\n", path && strlen(outputs[0]) == len && !memcmp(path, outputs[0], len),
         rocksdb_compactionjobinfo_input_files_count(info) == count,
         rocksdb_compactionjobinfo_num_input_files(info) == count &&
             rocksdb_compactionjobinfo_input_file_infos_count(info) == count,
         rocksdb_compactionjobinfo_input_records(info) == rocksdb_compactionjobinfo_output_records(info) &&
             rocksdb_compactionjobinfo_output_records(info) > 0);
  printf("levels: %d %d, blobs: %d\n", rocksdb_compactionjobinfo_base_input_level(info),
         rocksdb_compactionjobinfo_output_level(info),
         rocksdb_compactionjobinfo_blob_compression_type(info) <= 7 &&
             rocksdb_compaction_file_info_oldest_blob_file_number(rocksdb_compactionjobinfo_output_file_info_at(info, 0)) == 0);
  char* written = outputs[0];
  /* One table of the size that the family's tables have, into many without compression. */
  rocksdb_compaction_options_set_output_file_size_limit(options, 16 << 10);
  rocksdb_compaction_options_set_compression(options, 0);
  char** more = NULL;
  const char* again[] = {written};
  rocksdb_compact_files_cf(db, families[1], options, again, 1, 4, -1, &more, &made, info, &err);
  told("again");
  printf("many: %d, compression %u, level %d\n", made > 2, rocksdb_compactionjobinfo_compression(info), level_of(more[0]));
  rocksdb_compact_files_cf(db, families[1], NULL, again, 1, 5, 0, NULL, NULL, NULL, &err);
  told("what is gone");
  const char* first[] = {more[0]};
  rocksdb_compact_files_cf(db, families[1], NULL, first, 1, 1, 0, NULL, NULL, NULL, &err);
  told("up");
  rocksdb_compact_files_output_file_names_destroy(more, made);
  rocksdb_compact_files_output_file_names_destroy(outputs, 1);
  rocksdb_compact_files_output_file_names_destroy(NULL, 0);
  rocksdb_compaction_options_canceled_destroy(canceled);
  rocksdb_compaction_options_destroy(options);
  rocksdb_compactionjobinfo_destroy(info);
  rocksdb_livefiles_destroy(tables);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  const char* names[] = {"default", "odd"};
  const rocksdb_options_t* both[] = {options, options};
  db = rocksdb_open_column_families(options, argv[2], 2, names, both, families, &err);
  told("open");
  if (!db) return 1;
  if (argc > 3) {
    copy_all(argv[2], argv[3]);
  } else {
    compact();
  }
  rocksdb_column_family_handle_destroy(families[0]);
  rocksdb_column_family_handle_destroy(families[1]);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  return 0;
}
