import {
  AbstractLevel,
  AbstractDatabaseOptions,
  AbstractOpenOptions,
  AbstractPutOptions,
  AbstractDelOptions,
  AbstractBatchOperation,
  AbstractBatchOptions,
  AbstractChainedBatch,
  AbstractChainedBatchWriteOptions
} from 'abstract-level'

/** A database in a directory: an abstract-level over the Drumlin storage engine. */
export class DrumlinLevel<KDefault = string, VDefault = string>
  extends AbstractLevel<string | Buffer | Uint8Array, KDefault, VDefault> {
  /**
   * @param location The directory.
   * @param options Options of the database, and of `open`.
   */
  constructor (location: string, options?: DatabaseOptions<KDefault, VDefault> | undefined)

  /** The directory. */
  get location (): string

  open (): Promise<void>
  open (options: OpenOptions): Promise<void>

  put (key: KDefault, value: VDefault): Promise<void>
  put<K = KDefault, V = VDefault> (key: K, value: V, options: PutOptions<K, V>): Promise<void>

  del (key: KDefault): Promise<void>
  del<K = KDefault> (key: K, options: DelOptions<K>): Promise<void>

  batch (operations: Array<BatchOperation<typeof this, KDefault, VDefault>>): Promise<void>
  batch<K = KDefault, V = VDefault> (operations: Array<BatchOperation<typeof this, K, V>>, options: BatchOptions<K, V>): Promise<void>
  batch (): AbstractChainedBatch<typeof this, KDefault, VDefault>

  /** About how many bytes of tables the keys from `start` up to, not including, `end` take. */
  approximateSize (start: KDefault, end: KDefault): Promise<number>
  approximateSize<K = KDefault> (start: K, end: K, options: KeyEncoding<K>): Promise<number>

  /** Compacts the keys from `start` to `end`. */
  compactRange (start: KDefault, end: KDefault): Promise<void>
  compactRange<K = KDefault> (start: K, end: K, options: KeyEncoding<K>): Promise<void>

  /** A property by LevelDB's or RocksDB's name; empty for an unknown one. */
  getProperty (property: string): string

  /** Removes the database in `location`, and nothing else that is there. */
  static destroy (location: string): Promise<void>

  /** Makes the database in `location` one that can be opened again, from the files that are there. */
  static repair (location: string): Promise<void>
}

export interface DatabaseOptions<K, V> extends AbstractDatabaseOptions<K, V>, Omit<OpenOptions, 'passive'> {}

export interface OpenOptions extends AbstractOpenOptions {
  /** Beside another process that writes, as of now. Default: false. */
  readOnly?: boolean | undefined
  /** For caches, write buffers and all else, in bytes. Default: a quarter of the machine. */
  memoryBudget?: number | undefined
  maxOpenFiles?: number | undefined
  backgroundThreads?: number | undefined
  /** `true` is the default, LZ4; `false` is none. */
  compression?: boolean | 'none' | 'snappy' | 'lz4' | 'zstd' | 'zlib' | 'bzip2' | undefined
  /** Of a new directory. Default: `auto`, which is RocksDB's. */
  format?: 'auto' | 'rocksdb' | 'leveldb' | undefined
  tableFormat?: 'block' | 'plain' | 'searchable' | undefined
}

interface Sync {
  /** Whether the write outlives a power cut when its promise is resolved. Default: false, it outlives the process. */
  sync?: boolean | undefined
}

interface KeyEncoding<K> {
  keyEncoding?: AbstractPutOptions<K, unknown>['keyEncoding']
}

export interface PutOptions<K, V> extends AbstractPutOptions<K, V>, Sync {}
export interface DelOptions<K> extends AbstractDelOptions<K>, Sync {}
export interface BatchOptions<K, V> extends AbstractBatchOptions<K, V>, Sync {}
export interface ChainedBatchWriteOptions extends AbstractChainedBatchWriteOptions, Sync {}
export type BatchOperation<TDatabase, K, V> = AbstractBatchOperation<TDatabase, K, V>
