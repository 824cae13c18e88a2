'use strict'

const { AbstractChainedBatch } = require('abstract-level')
const { Packer } = require('./packed')

class ChainedBatch extends AbstractChainedBatch {
  #packer = new Packer()
  #write

  constructor (db, write) {
    super(db)
    this.#write = write
  }

  _put (key, value) {
    this.#packer.put(key, value)
  }

  _del (key) {
    this.#packer.del(key)
  }

  _clear () {
    this.#packer.clear()
  }

  _write (options) {
    return this.#write(this.#packer.packed(), options)
  }
}

module.exports = { ChainedBatch }
