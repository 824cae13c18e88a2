'use strict'

const { AbstractIterator } = require('abstract-level')
const ModuleError = require('module-error')
const { decoded, lengthAt } = require('./packed')

const NOTHING = Buffer.alloc(0)

// Most entries of a block, after the first of one.
const ENTRIES = 1000

// Entries come in blocks of some 16 KiB, those in memory without leaving this thread.
class Iterator extends AbstractIterator {
  #walk
  #block = NOTHING
  #at = 0
  #most = 1
  #keysAsText
  #valuesAsText
  #signal

  constructor (db, walk, options) {
    super(db, options)
    this.#walk = walk
    this.#keysAsText = options.keyEncoding === 'utf8'
    this.#valuesAsText = options.valueEncoding === 'utf8'
    this.#signal = options.signal
  }

  // The next block. It has nothing at the end.
  async #fetch (most) {
    const block = await this.#walk.next(most)
    if (this.#signal?.aborted) throw new AbortError()
    this.#block = block
    this.#at = 0
    return block.length > 0
  }

  // The entry at the block's front.
  #take () {
    const block = this.#block
    const key = this.#at + 8
    const value = key + lengthAt(block, this.#at)
    this.#at = value + lengthAt(block, key - 4)
    return [
      decoded(block, key, value, this.#keysAsText),
      decoded(block, value, this.#at, this.#valuesAsText)
    ]
  }

  // Not async, as a promise for each entry costs more than the entry: abstract-level awaits what is returned.
  _next () {
    return this.#at < this.#block.length ? this.#take() : this.#nextOfBlock()
  }

  async #nextOfBlock () {
    if (!await this.#fetch(this.#most)) return undefined
    this.#most = ENTRIES
    return this.#take()
  }

  async _nextv (size) {
    const entries = []
    while (entries.length < size) {
      if (this.#at === this.#block.length) {
        if (!await this.#fetch(Math.min(size - entries.length, ENTRIES))) break
      }
      entries.push(this.#take())
    }
    return entries
  }

  _seek (target) {
    this.#block = NOTHING
    this.#at = 0
    this.#most = 1
    this.#walk.seek(typeof target === 'string' ? Buffer.from(target) : target)
  }

  async _close () {
    this.#block = NOTHING
    this.#at = 0
    this.#walk.close()
  }
}

class AbortError extends ModuleError {
  constructor () {
    super('Operation has been aborted', { code: 'LEVEL_ABORTED' })
    this.name = 'AbortError'
  }
}

module.exports = { Iterator }
