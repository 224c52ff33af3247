/**
 * `node:http` and `node:https` for programs that start often. Importing one as an ES module evaluates each of its
 * exports, which loads the HTTP client behind `fetch`: a fifth of the time that loading the modules of a node took.
 */

export const http = process.getBuiltinModule('node:http')
export const https = process.getBuiltinModule('node:https')
