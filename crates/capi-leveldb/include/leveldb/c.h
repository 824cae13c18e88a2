/* LevelDB's C interface, 1.23, as Drumlin serves it. Link with -lleveldb.

   Texts and values that a function returns are malloc's: give them back with leveldb_free or free. `char** errptr` points to
   a null pointer or to a text of malloc's; after an error it points to a new text, and the old one was given back;
   after success it is as it was. Booleans are uint8_t: 0 or not. Databases, caches and comparators are for
   any thread at a time, everything else for one.

   A handle that is null (where none is allowed), destroyed, or of another type ends the process with a sentence. */

#ifndef DRUMLIN_LEVELDB_C_H_
#define DRUMLIN_LEVELDB_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leveldb_t leveldb_t;
typedef struct leveldb_cache_t leveldb_cache_t;
typedef struct leveldb_comparator_t leveldb_comparator_t;
typedef struct leveldb_env_t leveldb_env_t;
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;
typedef struct leveldb_iterator_t leveldb_iterator_t;
typedef struct leveldb_logger_t leveldb_logger_t;
typedef struct leveldb_options_t leveldb_options_t;
typedef struct leveldb_readoptions_t leveldb_readoptions_t;
typedef struct leveldb_snapshot_t leveldb_snapshot_t;
typedef struct leveldb_writebatch_t leveldb_writebatch_t;
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

/* ---- Databases. A new directory is LevelDB's; one that is there keeps its format, RocksDB's too. */

leveldb_t* leveldb_open(const leveldb_options_t* options, const char* name, char** errptr);

/* Iterators and snapshots may outlive the database. */
void leveldb_close(leveldb_t* db);

void leveldb_put(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key, size_t keylen, const char* val,
                 size_t vallen, char** errptr);

void leveldb_delete(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key, size_t keylen,
                    char** errptr);

/* All of the batch or nothing. The batch is as it was afterwards. */
void leveldb_write(leveldb_t* db, const leveldb_writeoptions_t* options, leveldb_writebatch_t* batch, char** errptr);

/* Null, a length of 0 and no error where the key is not there. */
char* leveldb_get(leveldb_t* db, const leveldb_readoptions_t* options, const char* key, size_t keylen, size_t* vallen,
                  char** errptr);

leveldb_iterator_t* leveldb_create_iterator(leveldb_t* db, const leveldb_readoptions_t* options);

const leveldb_snapshot_t* leveldb_create_snapshot(leveldb_t* db);
void leveldb_release_snapshot(leveldb_t* db, const leveldb_snapshot_t* snapshot);

/* "leveldb.num-files-at-level<N>", "leveldb.stats", "leveldb.sstables", "leveldb.approximate-memory-usage"; null for others. */
char* leveldb_property_value(leveldb_t* db, const char* propname);

/* About the bytes on disk of each range, from its start up to its limit. What only memory holds is not counted. */
void leveldb_approximate_sizes(leveldb_t* db, int num_ranges, const char* const* range_start_key,
                               const size_t* range_start_key_len, const char* const* range_limit_key,
                               const size_t* range_limit_key_len, uint64_t* sizes);

/* A null key is before the first one, or behind the last. */
void leveldb_compact_range(leveldb_t* db, const char* start_key, size_t start_key_len, const char* limit_key,
                           size_t limit_key_len);

/* Removes the database's files, and the directory if nothing else is in it. */
void leveldb_destroy_db(const leveldb_options_t* options, const char* name, char** errptr);

/* Makes a database openable again when its MANIFEST is lost or damaged. */
void leveldb_repair_db(const leveldb_options_t* options, const char* name, char** errptr);

/* ---- Iterators. Keys and values are the iterator's until it moves; both are null where it is nowhere. */

void leveldb_iter_destroy(leveldb_iterator_t*);
uint8_t leveldb_iter_valid(const leveldb_iterator_t*);
void leveldb_iter_seek_to_first(leveldb_iterator_t*);
void leveldb_iter_seek_to_last(leveldb_iterator_t*);
void leveldb_iter_seek(leveldb_iterator_t*, const char* k, size_t klen);
void leveldb_iter_next(leveldb_iterator_t*);
void leveldb_iter_prev(leveldb_iterator_t*);
const char* leveldb_iter_key(const leveldb_iterator_t*, size_t* klen);
const char* leveldb_iter_value(const leveldb_iterator_t*, size_t* vlen);
void leveldb_iter_get_error(const leveldb_iterator_t*, char** errptr);

/* ---- Batches. What does not fit (a key beyond 8 MiB, a value beyond 4 GiB) is reported by leveldb_write. */

leveldb_writebatch_t* leveldb_writebatch_create(void);
void leveldb_writebatch_destroy(leveldb_writebatch_t*);
void leveldb_writebatch_clear(leveldb_writebatch_t*);
void leveldb_writebatch_put(leveldb_writebatch_t*, const char* key, size_t klen, const char* val, size_t vlen);
void leveldb_writebatch_delete(leveldb_writebatch_t*, const char* key, size_t klen);
void leveldb_writebatch_iterate(const leveldb_writebatch_t*, void* state,
                                void (*put)(void*, const char* k, size_t klen, const char* v, size_t vlen),
                                void (*deleted)(void*, const char* k, size_t klen));
void leveldb_writebatch_append(leveldb_writebatch_t* destination, const leveldb_writebatch_t* source);

/* ---- Options. Sizes beyond LevelDB's bounds are moved to the nearest bound. */

leveldb_options_t* leveldb_options_create(void);
void leveldb_options_destroy(leveldb_options_t*);
/* Its destructor is called when it is destroyed and every database that uses it is closed. */
void leveldb_options_set_comparator(leveldb_options_t*, leveldb_comparator_t*);
void leveldb_options_set_filter_policy(leveldb_options_t*, leveldb_filterpolicy_t*);
void leveldb_options_set_create_if_missing(leveldb_options_t*, uint8_t);
void leveldb_options_set_error_if_exists(leveldb_options_t*, uint8_t);
/* Changes nothing: what compactions and recovery read is always checked, what reads read as their options say. */
void leveldb_options_set_paranoid_checks(leveldb_options_t*, uint8_t);
void leveldb_options_set_env(leveldb_options_t*, leveldb_env_t*);
/* Changes nothing: no function makes a logger. */
void leveldb_options_set_info_log(leveldb_options_t*, leveldb_logger_t*);
void leveldb_options_set_write_buffer_size(leveldb_options_t*, size_t);
void leveldb_options_set_max_open_files(leveldb_options_t*, int);
/* The memory of the database is the cache's bytes, four write buffers, and a quarter of both; at least 16 MiB. Without a
   cache it is a quarter of the machine's. Databases do not share a cache's blocks. */
void leveldb_options_set_cache(leveldb_options_t*, leveldb_cache_t*);
void leveldb_options_set_block_size(leveldb_options_t*, size_t);
void leveldb_options_set_block_restart_interval(leveldb_options_t*, int);
void leveldb_options_set_max_file_size(leveldb_options_t*, size_t);

enum { leveldb_no_compression = 0, leveldb_snappy_compression = 1 };
void leveldb_options_set_compression(leveldb_options_t*, int);

/* ---- Orders of keys. `compare` is called by several threads at a time. */

leveldb_comparator_t* leveldb_comparator_create(void* state, void (*destructor)(void*),
                                                int (*compare)(void*, const char* a, size_t alen, const char* b,
                                                               size_t blen),
                                                const char* (*name)(void*));
void leveldb_comparator_destroy(leveldb_comparator_t*);

/* ---- Filters. With functions of your own a Bloom filter of 10 bits a key is written, and they are not called: answers
   are the same. */

leveldb_filterpolicy_t* leveldb_filterpolicy_create(
    void* state, void (*destructor)(void*),
    char* (*create_filter)(void*, const char* const* key_array, const size_t* key_length_array, int num_keys,
                           size_t* filter_length),
    uint8_t (*key_may_match)(void*, const char* key, size_t length, const char* filter, size_t filter_length),
    const char* (*name)(void*));
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t*);
leveldb_filterpolicy_t* leveldb_filterpolicy_create_bloom(int bits_per_key);

/* ---- Options of reads and writes. Without any: checked, cached, the newest; not synced. */

leveldb_readoptions_t* leveldb_readoptions_create(void);
void leveldb_readoptions_destroy(leveldb_readoptions_t*);
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t*, uint8_t);
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t*, uint8_t);
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t*, const leveldb_snapshot_t*);

leveldb_writeoptions_t* leveldb_writeoptions_create(void);
void leveldb_writeoptions_destroy(leveldb_writeoptions_t*);
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t*, uint8_t);

/* ---- The rest. */

leveldb_cache_t* leveldb_cache_create_lru(size_t capacity);
void leveldb_cache_destroy(leveldb_cache_t* cache);

leveldb_env_t* leveldb_create_default_env(void);
void leveldb_env_destroy(leveldb_env_t*);
/* TEST_TMPDIR, or a folder of this user's among the temporary ones. */
char* leveldb_env_get_test_directory(leveldb_env_t*);

void leveldb_free(void* ptr);
int leveldb_major_version(void);
int leveldb_minor_version(void);

#ifdef __cplusplus
}
#endif

#endif
