'use strict'

const { AbstractLevel, AbstractSnapshot } = require('abstract-level')
const ModuleError = require('module-error')
const fs = require('fs/promises')
const addon = require('./lib/addon')
const { ChainedBatch } = require('./lib/chained-batch')
const { Iterator } = require('./lib/iterator')
const { Packer, values } = require('./lib/packed')

// What Store.get answers in place of a length.
const ABSENT = -1

class DrumlinLevel extends AbstractLevel {
  #location
  #store = null
  // A key on its way in, and its value on its way out.
  #scratch = Buffer.allocUnsafeSlow(16 << 10)
  #packer = new Packer()

  constructor (location, options) {
    if (typeof location !== 'string' || location === '') {
      throw new TypeError("The first argument 'location' must be a non-empty string")
    }
    super({
      encodings: { buffer: true, utf8: true, view: true },
      has: true,
      createIfMissing: true,
      errorIfExists: true,
      explicitSnapshots: true,
      getSync: true,
      additionalMethods: { approximateSize: true, compactRange: true },
      signals: { iterators: true }
    }, options)
    this.#location = location
  }

  get location () {
    return this.#location
  }

  async _open (options) {
    if (options.createIfMissing && !options.readOnly) {
      await fs.mkdir(this.#location, { recursive: true })
    }
    try {
      this.#store = await addon.open(this.#location, settings(options))
    } catch (cause) {
      if (cause.code !== 'LEVEL_NOT_FOUND') throw cause
      throw new ModuleError(`${this.#location} does not exist, or has no database`, { code: cause.code, cause })
    }
  }

  async _close () {
    const store = this.#store
    this.#store = null
    await store?.close()
  }

  // Looks in memory. A negative answer has no value in the scratch buffer.
  #find (key, snapshot) {
    const scratch = this.#scratch
    if (typeof key === 'string') {
      if (key.length * 3 > scratch.length) return -2
      return this.#store.get(scratch, scratch.utf8Write(key, 0), moment(snapshot))
    }
    if (key.byteLength > scratch.length) return -2
    scratch.set(key, 0)
    return this.#store.get(scratch, key.byteLength, moment(snapshot))
  }

  #found (length, options) {
    if (options.valueEncoding === 'utf8') return this.#scratch.utf8Slice(0, length)
    const value = Buffer.allocUnsafe(length)
    this.#scratch.copy(value, 0, 0, length)
    return value
  }

  #packed (keys) {
    this.#packer.clear()
    for (const key of keys) this.#packer.key(key)
    return this.#packer.packed()
  }

  // These are not async where the answer may be at hand, as abstract-level awaits what is returned.
  _get (key, options) {
    const length = this.#find(key, options.snapshot)
    if (length >= 0) return this.#found(length, options)
    return length === ABSENT ? undefined : this.#fetch(key, options.snapshot, options.valueEncoding === 'utf8')
  }

  async #fetch (key, snapshot, asText) {
    const found = await this.#store.fetch(this.#packed([key]), moment(snapshot))
    return values(found, asText)[0]
  }

  _getSync (key, options) {
    const length = this.#find(key, options.snapshot)
    if (length >= 0) return this.#found(length, options)
    if (length === ABSENT) return undefined
    const found = this.#store.fetchNow(this.#packed([key]), moment(options.snapshot))
    return values(found, options.valueEncoding === 'utf8')[0]
  }

  async _getMany (keys, options) {
    const packed = this.#packed(keys)
    const found = this.#store.getMany(packed, moment(options.snapshot)) ??
      await this.#store.fetch(packed, moment(options.snapshot))
    return values(found, options.valueEncoding === 'utf8')
  }

  async _has (key, options) {
    const length = this.#find(key, options.snapshot)
    if (length >= 0 || length === ABSENT) return length >= 0
    return await this.#fetch(key, options.snapshot, false) !== undefined
  }

  async _hasMany (keys, options) {
    const found = await this._getMany(keys, { ...options, valueEncoding: 'buffer' })
    return found.map(value => value !== undefined)
  }

  #write (packed, options) {
    return this.#store.write(packed, options?.sync === true)
  }

  _put (key, value, options) {
    this.#packer.clear()
    this.#packer.put(key, value)
    return this.#write(this.#packer.packed(), options)
  }

  _del (key, options) {
    this.#packer.clear()
    this.#packer.del(key)
    return this.#write(this.#packer.packed(), options)
  }

  _batch (operations, options) {
    this.#packer.clear()
    for (const operation of operations) {
      if (operation.type === 'put') {
        this.#packer.put(operation.key, operation.value)
      } else {
        this.#packer.del(operation.key)
      }
    }
    return this.#write(this.#packer.packed(), options)
  }

  _chainedBatch () {
    return new ChainedBatch(this, (packed, options) => this.#write(packed, options))
  }

  _iterator (options) {
    const walk = this.#store.walk(range(options), moment(options.snapshot))
    return new Iterator(this, walk, options)
  }

  async _clear (options) {
    return this.#store.clear(range(options), moment(options.snapshot))
  }

  _snapshot (options) {
    return new Snapshot(this.#store.moment(), options)
  }

  async approximateSize (start, end, options) {
    return this.#between('approximateSize', start, end, options)
  }

  async compactRange (start, end, options) {
    await this.#between('compact', start, end, options)
  }

  #between (method, start, end, options) {
    if (start === undefined || end === undefined) {
      throw new TypeError("The arguments 'start' and 'end' are required")
    }
    if (this.status === 'opening') {
      return this.deferAsync(() => this.#between(method, start, end, options))
    }
    this.#assertOpen()
    const encoding = this.keyEncoding(options?.keyEncoding)
    return this.#store[method](bytes(encoding.encode(start)), bytes(encoding.encode(end)))
  }

  getProperty (property) {
    if (typeof property !== 'string') {
      throw new TypeError("The first argument 'property' must be a string")
    }
    this.#assertOpen()
    return this.#store.property(property) ?? ''
  }

  #assertOpen () {
    if (this.status !== 'open') {
      throw new ModuleError('Database is not open', { code: 'LEVEL_DATABASE_NOT_OPEN' })
    }
  }

  static async destroy (location) {
    await addon.destroy(nonEmpty(location))
  }

  static async repair (location) {
    await addon.repair(nonEmpty(location))
  }
}

class Snapshot extends AbstractSnapshot {
  constructor (moment, options) {
    super(options)
    this.moment = moment
  }

  async _close () {
    this.moment.close()
  }
}

function moment (snapshot) {
  return snapshot?.moment
}

function bytes (data) {
  return typeof data === 'string' ? Buffer.from(data) : data
}

function nonEmpty (location) {
  if (typeof location !== 'string' || location === '') {
    throw new TypeError("The first argument 'location' must be a non-empty string")
  }
  return location
}

function range (options) {
  const range = {
    reverse: options.reverse === true,
    keys: options.keys !== false,
    values: options.values !== false
  }
  for (const bound of ['gt', 'gte', 'lt', 'lte']) {
    if (options[bound] !== undefined) range[bound] = Buffer.from(options[bound])
  }
  if (options.limit >= 0 && options.limit < Infinity) range.limit = options.limit
  return range
}

// Options of `open`, those of classic-level too: its cache and write buffers become the memory budget.
function settings (options) {
  const settings = {}
  for (const name of ['createIfMissing', 'errorIfExists', 'readOnly', 'memoryBudget', 'maxOpenFiles',
    'backgroundThreads', 'compression', 'format', 'tableFormat']) {
    if (options[name] !== undefined) settings[name] = options[name]
  }
  if (settings.compression === true) delete settings.compression
  if (settings.compression === false) settings.compression = 'none'
  if (settings.memoryBudget === undefined && options.cacheSize !== undefined) {
    settings.memoryBudget = Math.max(options.cacheSize + 2 * (options.writeBufferSize ?? 4 << 20), 32 << 20)
  }
  return settings
}

module.exports = { DrumlinLevel }
