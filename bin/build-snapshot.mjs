#!/usr/bin/env node
// The command `build-snapshot`: the same program as `vacancy build-snapshot`.
process.argv.splice(2, 0, 'build-snapshot')
await import('./vacancy.mjs')
