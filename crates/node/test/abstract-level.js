'use strict'

// abstract-level's own suite, over this store.

const test = require('tape')
const fs = require('fs')
const os = require('os')
const path = require('path')
const suite = require('abstract-level/test')
const { DrumlinLevel } = require('..')

const made = []

suite({
  test,
  factory (options) {
    const location = fs.mkdtempSync(path.join(os.tmpdir(), 'drumlin-'))
    made.push(location)
    return new DrumlinLevel(location, options)
  }
})

test('what the suite made is removed', function (t) {
  for (const location of made) fs.rmSync(location, { recursive: true, force: true })
  t.end()
})
