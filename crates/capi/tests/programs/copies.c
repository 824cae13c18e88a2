/* Backups, live files and metadata, and what they answer, in lines.
     copies DIR [BACKUPS]
   With the folder of backups that another library wrote, these are listed, verified and restored, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static char* err;

static void tell(const char* what) {
  if (err) printf("%s: %.*s\n", what, (int)strcspn(err, ":"), err);
  else printf("%s\n", what);
  rocksdb_free(err);
  err = NULL;
}

static void fill(rocksdb_t* db, const char* text) {
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  char key[16];
  for (int at = 0; at < 500; at++) {
    sprintf(key, "key%04d", at);
    rocksdb_put(db, writes, key, 7, text, strlen(text), &err);
  }
  tell("fill");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  tell("flush");
  rocksdb_flushoptions_destroy(flush);
  rocksdb_writeoptions_destroy(writes);
}

static void print_backups(rocksdb_backup_engine_t* engine) {
  const rocksdb_backup_engine_info_t* info = rocksdb_backup_engine_get_backup_info(engine);
  int count = rocksdb_backup_engine_info_count(info);
  for (int at = 0; at < count; at++)
    printf("backup %u, %d %d %d\n", rocksdb_backup_engine_info_backup_id(info, at),
           rocksdb_backup_engine_info_size(info, at) > 1000, rocksdb_backup_engine_info_number_files(info, at) > 3,
           rocksdb_backup_engine_info_timestamp(info, at) > 1700000000);
  rocksdb_backup_engine_info_destroy(info);
}

static void print_one(const rocksdb_options_t* options, const char* dir) {
  rocksdb_t* db = rocksdb_open(options, dir, &err);
  tell("open");
  if (!db) return;
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  size_t len;
  char* value = rocksdb_get(db, reads, "key0123", 7, &len, &err);
  printf("key0123 = %.*s\n", (int)len, value);
  rocksdb_free(value);
  rocksdb_readoptions_destroy(reads);
  rocksdb_close(db);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  char backups[600], restored[600];
  snprintf(backups, sizeof backups, "%s-backups", argv[1]);
  snprintf(restored, sizeof restored, "%s-restored", argv[1]);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_t* db = rocksdb_open(options, argv[1], &err);
  tell("open");
  fill(db, "one");
  fill(db, "two");
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  for (int at = 0; at < rocksdb_livefiles_count(files); at++) {
    size_t small, large;
    const char *from = rocksdb_livefiles_smallestkey(files, at, &small), *to = rocksdb_livefiles_largestkey(files, at, &large);
    const char* name = rocksdb_livefiles_name(files, at);
    printf("%s %d %.*s %.*s %d %llu %llu %d\n", rocksdb_livefiles_column_family_name(files, at),
           rocksdb_livefiles_level(files, at), (int)small, from, (int)large, to, rocksdb_livefiles_size(files, at) > 1000,
           (unsigned long long)rocksdb_livefiles_entries(files, at), (unsigned long long)rocksdb_livefiles_deletions(files, at),
           name[0] == '/' && strstr(name, ".sst") != NULL);
  }
  rocksdb_livefiles_destroy(files);
  rocksdb_column_family_metadata_t* family = rocksdb_get_column_family_metadata(db);
  char* name = rocksdb_column_family_metadata_get_name(family);
  printf("%s: %zu files, %zu levels, %d\n", name, rocksdb_column_family_metadata_get_file_count(family),
         rocksdb_column_family_metadata_get_level_count(family), rocksdb_column_family_metadata_get_size(family) > 2000);
  rocksdb_free(name);
  rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(family, 0);
  printf("level %d: %zu files, %d\n", rocksdb_level_metadata_get_level(level), rocksdb_level_metadata_get_file_count(level),
         rocksdb_level_metadata_get_size(level) == rocksdb_column_family_metadata_get_size(family));
  rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(level, 1);
  size_t len;
  char *small = rocksdb_sst_file_metadata_get_smallestkey(file, &len), *path = rocksdb_sst_file_metadata_get_relative_filename(file);
  printf("%.*s %d %d\n", (int)len, small, rocksdb_sst_file_metadata_get_size(file) > 1000, strstr(path, ".sst") != NULL);
  rocksdb_free(small);
  rocksdb_free(path);
  rocksdb_sst_file_metadata_destroy(file);
  rocksdb_level_metadata_destroy(level);
  rocksdb_column_family_metadata_destroy(family);

  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, backups, &err);
  tell("backups");
  rocksdb_backup_engine_create_new_backup(engine, db, &err);
  tell("backup");
  fill(db, "three");
  rocksdb_backup_engine_create_new_backup_flush(engine, db, 1, &err);
  tell("backup");
  print_backups(engine);
  rocksdb_backup_engine_verify_backup(engine, 2, &err);
  tell("verify");
  rocksdb_backup_engine_verify_backup(engine, 9, &err);
  tell("verify what is not there");
  rocksdb_close(db);
  rocksdb_restore_options_t* restore = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_backup(engine, restored, restored, restore, 1, &err);
  tell("restore");
  print_one(options, restored);
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, restored, restored, restore, &err);
  tell("restore the latest");
  print_one(options, restored);
  rocksdb_backup_engine_purge_old_backups(engine, 1, &err);
  tell("purge");
  print_backups(engine);
  rocksdb_backup_engine_close(engine);
  if (argc > 2) {
    rocksdb_backup_engine_options_t* opened = rocksdb_backup_engine_options_create(argv[2]);
    engine = rocksdb_backup_engine_open_opts(opened, rocksdb_create_default_env(), &err);
    tell("the other's backups");
    print_backups(engine);
    rocksdb_backup_engine_verify_backup(engine, 2, &err);
    tell("verify");
    rocksdb_backup_engine_restore_db_from_latest_backup(engine, restored, restored, restore, &err);
    tell("restore");
    print_one(options, restored);
    rocksdb_backup_engine_close(engine);
    rocksdb_backup_engine_options_destroy(opened);
  }
  rocksdb_restore_options_destroy(restore);
  rocksdb_options_destroy(options);
  return 0;
}
