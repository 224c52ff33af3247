/** The door of the HTTP contracts: what programs say to each other, as schemas. Pure, and so fit for browsers. */

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
