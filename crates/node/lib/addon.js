'use strict'

// The addon, made by `make node`, for this system and processor.
module.exports = require(`../drumlin.${process.platform}-${process.arch}.node`)
