/** The door of the HTTP contracts: what programs say to each other, as schemas. Pure, and so fit for browsers. */

export * from './fabric.ts'
export * from './node.ts'
