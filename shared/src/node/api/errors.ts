/**
 * Every error of the API: code, HTTP status, message and hint. A thrown error may replace message and hint with more
 * specific ones. The reference page is generated from this table.
 */
import { ProblemError, type ProblemOptions } from './route.ts'

type ErrorRow = { readonly status: number; readonly message: string; readonly hint: string }

export const ERRORS = {
  'address-too-long': {
    status: 414,
    message: 'The address of the request is too long.',
    hint: 'Send at most 16 KiB of address and headers.',
  },
  'bad-idempotency-key': {
    status: 400,
    message: 'idempotency-key must be 8 to 128 visible characters',
    hint: 'Send a random UUID, the same one when a request is repeated.',
  },
  'bad-range': { status: 400, message: 'from must be before to', hint: 'Such as from=now-1h and to=now.' },
  'bad-time': { status: 400, message: 'Invalid time.', hint: 'Such as now, now-1h or 2026-11-20T18:00:00Z.' },
  'bad-topics': {
    status: 400,
    message: 'Too many topics, or an invalid topic name.',
    hint: 'Such as topics=summary,shard:s1',
  },
  'change-open': { status: 409, message: 'A change of the codec list is already planned.', hint: 'Discard it first.' },
  'chunk-too-large': {
    status: 413,
    message: 'The chunk is too large.',
    hint: 'Send smaller chunks, and no more than the file has.',
  },
  'client-not-built': {
    status: 503,
    message: 'The client library is not built on this server.',
    hint: 'Run `npm run build --workspace client` in its installation.',
  },
  'codec-list-differs': {
    status: 409,
    message: 'In a cluster the codec list of the registry applies.',
    hint: 'Omit the file. To change the list itself, see the codec list page.',
  },
  'comparison-busy': {
    status: 503,
    message: 'Too many snapshots are being compared.',
    hint: 'Try again in a minute.',
  },
  'comparison-failed': {
    status: 500,
    message: 'The snapshots could not be compared.',
    hint: 'A file may be damaged: the log of the control plane has the details.',
  },
  'cross-site': {
    status: 403,
    message: 'The request comes from a page of another site.',
    hint: 'Use the console, or a program with an API token.',
  },
  csrf: {
    status: 403,
    message: 'The x-csrf header is missing or wrong.',
    hint: 'Reload the page. Programs send x-csrf with the value from GET /api/v1/me, or use an API token.',
  },
  'database-down': {
    status: 503,
    message: 'The database does not respond.',
    hint: 'Try again later. /ready reports when the database is back.',
  },
  'disk-full': {
    status: 507,
    message: 'The disk of the control plane is full.',
    hint: 'Drop unfinished uploads or delete old snapshots. The upload resumes where it is.',
  },
  'empty-chunk': { status: 400, message: 'The chunk is empty.', hint: 'Send its bytes.' },
  'folder-unreadable': {
    status: 503,
    message: 'The import folder cannot be read.',
    hint: 'Create it, or make it readable for the user of the control plane.',
  },
  forbidden: {
    status: 403,
    message: 'Your role does not allow this.',
    hint: 'Ask an admin for the role.',
  },
  'foreign-host': {
    status: 421,
    message: 'This control plane does not serve that host name.',
    hint: 'Use its own address, or add the name to allowed_hosts of its configuration.',
  },
  'headers-too-large': {
    status: 431,
    message: 'The headers of the request are too large.',
    hint: 'Send at most 16 KiB of address and headers. Delete the cookies of this address.',
  },
  'id-with-comma': {
    status: 400,
    message: 'Property ids with a comma cannot be looked up.',
    hint: 'Use PROPEXIST or PROPROOMLIST.',
  },
  'import-over': { status: 409, message: 'The import has already ended.', hint: 'It can no longer be cancelled.' },
  incomplete: { status: 400, message: 'The request ended early.', hint: 'Send it again.' },
  internal: {
    status: 500,
    message: 'Internal error. The log of the control plane has the details.',
    hint: 'Report the request id to the operator of the control plane.',
  },
  'invalid-codecs': { status: 400, message: 'Invalid codec list.', hint: 'A codec list has 1 to 24 distinct names.' },
  'invalid-cursor': { status: 400, message: 'Invalid cursor.', hint: 'Start again without a cursor.' },
  'invalid-fields': {
    status: 400,
    message: 'Invalid fields of a command.',
    hint: 'docs/commands.md lists the fields of each command.',
  },
  'invalid-id': { status: 400, message: 'Invalid property id.', hint: 'Property ids are UUIDs or 1 to 14 characters.' },
  'invalid-request': {
    status: 400,
    message: 'The request does not match the contract.',
    hint: '/docs lists what each path takes.',
  },
  'invalid-shard': { status: 400, message: 'Invalid shard id.', hint: 'Use letters, digits, `.`, `_` and `-`.' },
  'invalid-side': {
    status: 400,
    message: 'This is neither a snapshot nor a shard.',
    hint: 'Give the digest of a snapshot, or `shard:` and the id of a shard.',
  },
  'invalid-stay-id': {
    status: 400,
    message: 'Invalid stay id.',
    hint: 'Stay ids are UUIDs or 1 to 14 printable characters, as the booking system chose them.',
  },
  'invalid-token': {
    status: 401,
    message: 'The API token is unknown, revoked or expired.',
    hint: 'Create a new one under Settings, API tokens.',
  },
  'invalid-window': {
    status: 400,
    message: 'The first night is after the last, or a date is invalid.',
    hint: 'Give the first and the last night to keep as YYYY-MM-DD, in this order.',
  },
  'item-not-found': { status: 404, message: 'This no longer needs attention.', hint: 'Load the overview again.' },
  'kind-not-available': { status: 400, message: 'Unknown type of operation.', hint: 'GET /docs lists the types.' },
  'last-admin': {
    status: 409,
    message: 'There must be an admin who may sign in.',
    hint: 'Make another person an admin first.',
  },
  'link-not-good': {
    status: 401,
    message: 'This sign-in link has been used, or has expired.',
    hint: 'Ask an admin for a new one, or run `vacancy control-plane link` on the server.',
  },
  'list-moved-on': {
    status: 409,
    message: 'The codec list in force has changed.',
    hint: 'Start from the list in force.',
  },
  'name-taken': { status: 409, message: 'A person with that name exists.', hint: 'Choose another name.' },
  'no-address': {
    status: 502,
    message: 'The wire protocol address of the node is unknown.',
    hint: 'Check /status of the node, or set its address in the configuration of the control plane.',
  },
  'no-change': {
    status: 400,
    message: 'This is the list that is in force.',
    hint: 'Add, remove, rename or move an entry first.',
  },
  'no-checksum': {
    status: 400,
    message: 'x-chunk-sha256 is not 64 hexadecimal digits.',
    hint: 'Send the SHA-256 of the bytes of this chunk.',
  },
  'no-codec-list': {
    status: 503,
    message: 'Codec list unavailable.',
    hint: 'Start a node of the shard or the registry, then try again.',
  },
  'no-coverage': {
    status: 502,
    message: 'The node does not report what it holds.',
    hint: 'It may be starting, or run an older version. See its page.',
  },
  'no-errors': {
    status: 404,
    message: 'No errors of this import are stored.',
    hint: 'Only a build that failed on the content of its files has errors.',
  },
  'no-http': {
    status: 400,
    message: 'Malformed HTTP request.',
    hint: 'Is this the address of the control plane, with http:// or https:// as it serves?',
  },
  'no-import-folder': {
    status: 404,
    message: 'This control plane has no import folder.',
    hint: 'Upload the files, or set import_folder in its configuration.',
  },
  'no-leader': {
    status: 503,
    message: 'The shard has no leader.',
    hint: 'Choose a node that answers to read its own data.',
  },
  'no-node': { status: 503, message: 'The shard has no node.', hint: 'Check that a node of the shard answers.' },
  'no-offset': {
    status: 400,
    message: 'The offset is not a number of bytes.',
    hint: 'Send the position of the chunk in the file.',
  },
  'no-password': {
    status: 409,
    message: 'You signed in with a token, which has no password.',
    hint: 'Sign in as a person to change a password.',
  },
  'no-person': { status: 404, message: 'There is no such person.', hint: 'GET /api/v1/people lists everybody.' },
  'no-preview': {
    status: 400,
    message: 'This command has no preview.',
    hint: 'Preview a command that writes to known properties.',
  },
  'no-read': { status: 400, message: 'This command writes.', hint: 'Only reads go to every replica.' },
  'no-edge': {
    status: 409,
    message: 'No edge router responds.',
    hint: 'Set the key fabric in the configuration of the control plane to the HTTP addresses of edge routers.',
  },
  'no-resolver': {
    status: 409,
    message: 'This control plane has no resolver.',
    hint: 'Set the key resolver in its configuration.',
  },
  'no-search': { status: 400, message: 'This command is not a search.', hint: 'Use SEARCHPROP or SEARCHAVAIL.' },
  'no-shard': { status: 503, message: 'No shard is known yet.', hint: 'Check that a node answers.' },
  'no-such-change': {
    status: 404,
    message: 'There is no such plan, or it was discarded.',
    hint: 'Reload the codec list page.',
  },
  'no-such-file': {
    status: 404,
    message: 'There is no such CSV file in the import folder.',
    hint: 'Request the list of its files. Links that lead out of the folder are not followed.',
  },
  'no-such-import': { status: 404, message: 'There is no such import.', hint: 'GET /api/v1/imports lists them.' },
  'no-such-path': { status: 404, message: 'There is no such path.', hint: '/docs lists the paths.' },
  'no-such-range': { status: 416, message: 'The range is outside of the file.', hint: 'Request a part of the file.' },
  'no-such-snapshot': {
    status: 404,
    message: 'There is no such snapshot here.',
    hint: 'The snapshots page lists them. Snapshots of nodes cannot be downloaded.',
  },
  'no-such-upload': {
    status: 404,
    message: 'There is no such upload.',
    hint: 'It was finished, dropped, or idle for 48 h. Begin it again.',
  },
  'no-token': {
    status: 404,
    message: 'There is no such token, or it was revoked before.',
    hint: 'GET /api/v1/tokens lists them.',
  },
  'no-write': { status: 400, message: 'This command does not write.', hint: 'Run it.' },
  'node-answer': { status: 502, message: 'The node answered with an error.', hint: 'See the log of the node.' },
  'node-named': {
    status: 409,
    message: 'The node cannot be forgotten while it is still listed.',
    hint: 'Remove it from the registry, the configuration or its shard first.',
  },
  'node-not-found': {
    status: 404,
    message: 'There is no such node in the shard.',
    hint: 'It may have been forgotten already.',
  },
  'node-timeout': {
    status: 504,
    message: 'The node did not answer in time.',
    hint: 'Is the node running, and can this machine reach it?',
  },
  'node-unreachable': {
    status: 502,
    message: 'No connection to the node.',
    hint: 'Is the node running, and can this machine reach it?',
  },
  'handover-busy': {
    status: 409,
    message: 'Another handover is running.',
    hint: 'Wait until it ends, or leave it: GET /api/v1/handovers lists it.',
  },
  'handover-not-found': {
    status: 404,
    message: 'There is no such handover.',
    hint: 'GET /api/v1/handovers lists them.',
  },
  'handover-not-stopped': {
    status: 409,
    message: 'The handover is in another state.',
    hint: 'Only a stopped handover can be resumed, and only an unfinished one can be abandoned.',
  },
  'handover-scope-not-found': {
    status: 404,
    message: 'No node is in this zone or on this machine.',
    hint: 'A machine is the host of the HTTP address of its nodes.',
  },
  'not-cancellable': {
    status: 409,
    message: 'The operation can no longer be cancelled.',
    hint: 'A request that was sent to a node cannot be revoked. Wait until it ends, then plan the reverse operation.',
  },
  'not-confirmed': {
    status: 400,
    message: 'The confirmation does not match.',
    hint: 'Repeat the text of the plan or preview in `confirm`.',
  },
  'not-signed-in': {
    status: 401,
    message: 'You are not signed in.',
    hint: 'Sign in, or send an API token as Authorization: Bearer.',
  },
  'not-this-answer': {
    status: 409,
    message: 'The control plane did not return this result to you since it started.',
    hint: 'Run the request again and save the new result.',
  },
  'not-yours': { status: 403, message: 'This belongs to another person.', hint: 'Ask them, or an admin.' },
  'nothing-rejected': {
    status: 409,
    message: 'The import has no rejected rows.',
    hint: 'Only a build that failed on the content of its files can be repeated without them.',
  },
  'not-recorded': {
    status: 404,
    message: 'The state of the cluster was not recorded at that time.',
    hint: 'States are kept for 72 h. Choose a moment at which the control plane was running.',
  },
  'operation-not-found': {
    status: 404,
    message: 'There is no such operation.',
    hint: 'GET /api/v1/operations lists them.',
  },
  'other-file': {
    status: 422,
    message: 'The uploaded bytes do not match the file.',
    hint: 'The file changed during the upload, or the upload continued with another file. Start it again.',
  },
  'packed-body': {
    status: 415,
    message: 'The body is compressed.',
    hint: 'Send it as it is, without Content-Encoding.',
  },
  'person-disabled': {
    status: 409,
    message: 'The person may not sign in.',
    hint: 'Enable the person first.',
  },
  'plan-blocked': {
    status: 409,
    message: 'The plan cannot be executed now.',
    hint: 'Resolve the failed check, then plan again.',
  },
  'plan-not-found': {
    status: 404,
    message: 'There is no such plan.',
    hint: 'Plans are kept for 10 minutes. Make a new one.',
  },
  'plan-out-of-date': {
    status: 409,
    message: 'The cluster changed since this plan was made. Nothing was executed.',
    hint: 'Review and start the new plan.',
  },
  'property-not-found': {
    status: 404,
    message: 'There is no such property in the shard.',
    hint: 'Explain match in the playground names the shards that have it.',
  },
  'reason-required': {
    status: 400,
    message: 'The plan has a warning: a longer reason is required.',
    hint: 'State the reason, for the audit log.',
  },
  'request-timeout': {
    status: 408,
    message: 'The request did not arrive in time.',
    hint: 'Send the whole request without pauses.',
  },
  'result-too-large': {
    status: 413,
    message: 'The result is too large to be saved.',
    hint: 'Request fewer rows with a lower limit or fewer dates, or export the table as CSV or JSON.',
  },
  'rows-unknown': {
    status: 409,
    message: 'The rejected rows are not known.',
    hint: 'Fix the files and import them again.',
  },
  'segment-missing': { status: 400, message: 'Properties are listed by segment.', hint: 'Choose a segment first.' },
  'session-ended': {
    status: 401,
    message: 'Your session has ended.',
    hint: 'Sign in, or send an API token as Authorization: Bearer.',
  },
  'set-up-needed': {
    status: 409,
    message: 'This link creates the first admin.',
    hint: 'Choose a name and a password on the sign-in page.',
  },
  'shard-busy': {
    status: 409,
    message: 'Another operation is running on the shard.',
    hint: 'One operation runs on a shard at a time. Wait until it is over.',
  },
  'shard-not-found': { status: 404, message: 'There is no such shard.', hint: 'The shards page lists them.' },
  'shard-required': { status: 400, message: 'The request must name a shard.', hint: 'Give its shard.' },
  'sign-in-failed': {
    status: 401,
    message: 'The name or the password is wrong.',
    hint: 'Check both. An admin can give you a new sign-in link.',
  },
  'snapshot-in-use': { status: 409, message: 'The snapshot is in use.', hint: 'Install another one there first.' },
  'snapshot-lost': {
    status: 410,
    message: 'The file of this snapshot is missing on the disk.',
    hint: 'Delete it here and build it again.',
  },
  'stay-changed': {
    status: 409,
    message: 'The stay has changed meanwhile.',
    hint: 'Nothing was done. Look at the record as it is now, and decide again.',
  },
  'stay-expired': {
    status: 409,
    message: 'The hold has expired.',
    hint: 'Nothing was done. The booking system can confirm it with `retake` if all rooms are still free.',
  },
  'stay-not-found': {
    status: 404,
    message: 'There is no such stay in the shard.',
    hint: 'Check the id and the shard. Records are kept for 72 h after their last change; to cancel an older booking, send RELEASESTAY with its lines.',
  },
  'stay-sold-out': {
    status: 409,
    message: 'Too few rooms are left.',
    hint: 'Nothing was done. Look at the calendar of the property.',
  },
  'stays-unsupported': {
    status: 409,
    message: 'The shard has no stays.',
    hint: 'Stays need feature level 2. Upgrade every node of the shard, learners too: the leader raises the level by itself once all report it.',
  },
  'too-long': { status: 400, message: 'The request is too long to be stored.', hint: 'Shorten its lists.' },
  'too-many': { status: 409, message: 'The maximum number is reached.', hint: 'Remove what is not needed.' },
  'too-many-imports': {
    status: 409,
    message: 'Too many imports have not ended yet.',
    hint: 'Wait for one of them, or cancel it.',
  },
  'too-many-links': {
    status: 409,
    message: 'You have shared too many long requests.',
    hint: 'Save the query as visible to everyone, and share its page.',
  },
  'too-many-pins': {
    status: 409,
    message: 'Too many runs are pinned.',
    hint: 'Unpin one, or save the query under a name.',
  },
  'too-many-requests': {
    status: 429,
    message: 'Too many requests.',
    hint: 'Send fewer requests. The live channel pushes changes.',
  },
  'too-many-results': {
    status: 409,
    message: 'You have too many saved results.',
    hint: 'Remove one that is no longer needed.',
  },
  'too-many-saved': {
    status: 409,
    message: 'You have too many saved queries.',
    hint: 'Remove one that is no longer needed.',
  },
  'too-many-segments': {
    status: 502,
    message: 'The node returned more segments than it can have.',
    hint: 'See the log of the node.',
  },
  'too-many-tries': { status: 429, message: 'Too many failed attempts.', hint: 'Try again later.' },
  'too-many-uploads': {
    status: 409,
    message: 'There are too many uploads.',
    hint: 'Finish or drop one of them on the imports page.',
  },
  'unknown-link': {
    status: 404,
    message: 'There is no request behind this link.',
    hint: 'The link is incomplete or has expired. Ask for a new one.',
  },
  'unknown-outcome': {
    status: 504,
    message: 'The outcome of the write is unknown.',
    hint: 'It may or may not have been done. Read the state before you repeat it.',
  },
  'unknown-query': {
    status: 404,
    message: 'There is no such saved query.',
    hint: 'It was removed, or its owner keeps it private.',
  },
  'unknown-result': {
    status: 404,
    message: 'There is no such saved result.',
    hint: 'It was removed, or has expired. Its owner can run it again.',
  },
  'unknown-run': { status: 404, message: 'This run is not in your history.', hint: 'It may have been forgotten.' },
  'unknown-series': {
    status: 400,
    message: 'There is no such series, or too many are requested.',
    hint: 'GET /docs lists the series.',
  },
  'upload-busy': {
    status: 409,
    message: 'Another chunk of this file is being written.',
    hint: 'Send one chunk at a time. Request the offset in a second.',
  },
  'upload-in-use': { status: 409, message: 'The upload belongs to an import.', hint: 'Cancel the import first.' },
  'upload-lost': {
    status: 410,
    message: 'The uploaded bytes are missing on the disk.',
    hint: 'Drop this upload and start it again.',
  },
  'write-mode-off': {
    status: 400,
    message: 'The command writes, but write mode is off.',
    hint: 'Switch write mode on, or send "write": true.',
  },
  'wrong-checksum': {
    status: 460,
    message: 'The checksum of the received bytes differs.',
    hint: 'Send the chunk again.',
  },
  'wrong-kind': { status: 400, message: 'The files are swapped.', hint: 'Swap the two uploads.' },
  'wrong-offset': {
    status: 409,
    message: 'The chunk does not start at the end of the upload.',
    hint: 'Continue at the offset in this response.',
  },
  'wrong-password': {
    status: 403,
    message: 'The current password is wrong.',
    hint: 'Enter the password you signed in with.',
  },
  'wrong-size': {
    status: 400,
    message: 'The file is empty or too large.',
    hint: 'Choose a file that is not empty and within the size limit.',
  },
} as const satisfies { readonly [code: string]: ErrorRow }

type ErrorCode = keyof typeof ERRORS

/** An error by its code. `detail` and `hint` replace the texts of the table. */
export function problem(
  code: ErrorCode,
  { detail, ...options }: ProblemOptions & { detail?: string } = {},
): ProblemError {
  const { status, message, hint } = ERRORS[code]
  return new ProblemError(status, code, detail ?? message, { hint, ...options })
}
