/** Entry point of the HTTP contracts between programs, as schemas. Pure, so usable in browsers. */

export * from './access.ts'
export * from './cluster-view.ts'
export * from './codecs.ts'
export * from './console.ts'
export * from './control.ts'
export * from './fabric.ts'
export * from './imports.ts'
export * from './live.ts'
export * from './live-frames.ts'
export * from './node.ts'
export * from './playground.ts'
export * from './programs.ts'
