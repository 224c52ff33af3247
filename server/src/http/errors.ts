/**
 * The one table of refusals: the code that programs tell them apart by, its HTTP status, what it says, and what to do.
 * A refusal may say more of its case in place of the text here. The reference page is made from this table.
 */
import { ProblemError, type ProblemOptions } from './route.ts'

type ErrorRow = { readonly status: number; readonly message: string; readonly hint: string }

export const ERRORS = {
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
  'change-open': { status: 409, message: 'A change of the codec list is already planned.', hint: 'Put it away first.' },
  'chunk-too-large': {
    status: 413,
    message: 'The chunk is too large.',
    hint: 'Send smaller chunks, and no more than the file has.',
  },
  'codec-list-differs': {
    status: 409,
    message: 'In a cluster the codec list of the registry applies.',
    hint: 'Leave the file out; to change the list itself see the page of the codec list.',
  },
  'cross-site': {
    status: 403,
    message: 'The request comes from a page of another site.',
    hint: 'Use the console, or a program with an API token.',
  },
  csrf: {
    status: 403,
    message: 'The change does not show that it comes from the console.',
    hint: 'Reload the page; programs send x-csrf with the value of GET /api/v1/me, or use an API token.',
  },
  'database-down': {
    status: 503,
    message: 'The database does not answer.',
    hint: 'Try again when it is back. /ready reports when.',
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
    hint: 'Make it, or let the user of the control plane read it.',
  },
  forbidden: {
    status: 403,
    message: 'Your role does not allow this.',
    hint: 'Ask an admin for the role, or for somebody to do it.',
  },
  'foreign-host': {
    status: 421,
    message: 'This control plane is not reached under that name.',
    hint: 'Use its own address, or add the name to allowed_hosts of its configuration.',
  },
  'headers-too-large': {
    status: 431,
    message: 'The headers of the request are too large.',
    hint: 'Send fewer or shorter headers. Delete the cookies of this address.',
  },
  'id-with-comma': {
    status: 400,
    message: 'Property ids with a comma cannot be looked up.',
    hint: 'PROPEXIST and PROPROOMLIST answer for it.',
  },
  'import-over': { status: 409, message: 'The import has already ended.', hint: 'Nothing is left to cancel.' },
  incomplete: { status: 400, message: 'The request ended early.', hint: 'Send it again.' },
  internal: {
    status: 500,
    message: 'Internal error. The log of the control plane has the details.',
    hint: 'Report the request id to the operator of the control plane.',
  },
  'invalid-codecs': { status: 400, message: 'Invalid codec list.', hint: 'A codec list has 1 to 24 names, each once.' },
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
  'invalid-token': {
    status: 401,
    message: 'The API token is unknown, revoked or expired.',
    hint: 'Make a new one under Settings, API tokens.',
  },
  'invalid-window': {
    status: 400,
    message: 'The first night is after the last, or a date is invalid.',
    hint: 'Name the first and the last night to keep, YYYY-MM-DD, in this order.',
  },
  'item-not-found': { status: 404, message: 'This no longer needs attention.', hint: 'Load the overview again.' },
  'kind-not-available': { status: 400, message: 'Unknown type of operation.', hint: 'GET /docs lists the types.' },
  'last-admin': {
    status: 409,
    message: 'There must be an admin who may sign in.',
    hint: 'Make somebody else an admin first.',
  },
  'link-not-good': {
    status: 401,
    message: 'This sign-in link has been used, or has expired.',
    hint: 'Ask an admin for a new one, or run `vacancy control-plane link` on the server.',
  },
  'list-moved-on': {
    status: 409,
    message: 'The codec list in force has changed.',
    hint: 'Begin with the list that is in force now.',
  },
  'name-taken': { status: 409, message: 'There is a person of that name.', hint: 'Choose another name.' },
  'no-address': {
    status: 502,
    message: 'The wire protocol address of the node is unknown.',
    hint: 'Look at /status of the node, or give its address in the configuration of the control plane.',
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
    hint: 'It may be starting, or run an older version. Its page has more.',
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
  'no-offset': { status: 400, message: 'The offset is not a number of bytes.', hint: 'Send where the chunk begins.' },
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
  'no-resolver': {
    status: 409,
    message: 'This control plane has no resolver.',
    hint: 'Set the key resolver in its configuration.',
  },
  'no-search': { status: 400, message: 'This command is not a search.', hint: 'Use SEARCHPROP or SEARCHAVAIL.' },
  'no-shard': { status: 503, message: 'No shard is known yet.', hint: 'Check that a node answers.' },
  'no-such-change': {
    status: 404,
    message: 'There is no such plan, or it was put away.',
    hint: 'Load the page of the codec list again.',
  },
  'no-such-file': {
    status: 404,
    message: 'There is no such CSV file in the import folder.',
    hint: 'Ask for the list of its files; links that lead out of it are not followed.',
  },
  'no-such-import': { status: 404, message: 'There is no such import.', hint: 'GET /api/v1/imports lists them.' },
  'no-such-path': { status: 404, message: 'There is no such path.', hint: '/docs lists the paths.' },
  'no-such-range': { status: 416, message: 'The range is outside of the file.', hint: 'Request a part of the file.' },
  'no-such-snapshot': {
    status: 404,
    message: 'There is no such snapshot here.',
    hint: 'The snapshots page lists them. Nodes do not give out their own.',
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
    message: 'The node cannot be forgotten while something names it.',
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
  'not-cancellable': {
    status: 409,
    message: 'The operation can no longer be cancelled.',
    hint: 'What was sent to a node cannot be taken back. Wait for its end and plan the way back.',
  },
  'not-confirmed': {
    status: 400,
    message: 'The confirmation does not match.',
    hint: 'Repeat in `confirm` what the plan or preview names.',
  },
  'not-signed-in': {
    status: 401,
    message: 'You are not signed in.',
    hint: 'Sign in, or send an API token as Authorization: Bearer.',
  },
  'not-this-answer': {
    status: 409,
    message: 'The control plane has not given you this result since it started.',
    hint: 'Run the request again and save the new result.',
  },
  'not-yours': { status: 403, message: 'This belongs to another person.', hint: 'Ask them, or an admin.' },
  'nothing-rejected': {
    status: 409,
    message: 'The import has no rejected rows.',
    hint: 'Only a build that failed on the content of its files can be repeated without them.',
  },
  'operation-not-found': {
    status: 404,
    message: 'There is no such operation.',
    hint: 'GET /api/v1/operations lists them.',
  },
  'other-file': {
    status: 422,
    message: 'The uploaded bytes are not one file.',
    hint: 'The file was changed, or another one of the same name was continued. Begin it again.',
  },
  'person-disabled': {
    status: 409,
    message: 'The person may not sign in.',
    hint: 'Let the person sign in again first.',
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
    hint: 'Review the new plan and start that one.',
  },
  'reason-required': {
    status: 400,
    message: 'The plan has a warning: a longer reason is required.',
    hint: 'State the reason, for the audit log.',
  },
  'request-timeout': { status: 408, message: 'The request did not arrive in time.', hint: 'Send all of it at once.' },
  'result-too-large': {
    status: 413,
    message: 'The result is too large to be saved.',
    hint: 'Ask for less, by a lower limit or fewer dates, and save that; or export the table as CSV or JSON.',
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
    message: 'The file of this snapshot is gone from the disk.',
    hint: 'Delete it here and build it again.',
  },
  'too-long': { status: 400, message: 'The request is too long to be kept.', hint: 'Shorten its lists.' },
  'too-many': { status: 409, message: 'The maximum number is reached.', hint: 'Remove what is not needed.' },
  'too-many-imports': {
    status: 409,
    message: 'Too many imports have not ended yet.',
    hint: 'Wait for one of them, or cancel it.',
  },
  'too-many-links': {
    status: 409,
    message: 'You have shared too many long requests.',
    hint: 'Save the query for everybody to see, and share its page.',
  },
  'too-many-pins': {
    status: 409,
    message: 'Too many runs are pinned.',
    hint: 'Unpin one, or save the query under a name.',
  },
  'too-many-requests': {
    status: 429,
    message: 'Too many requests.',
    hint: 'Send fewer requests. The live channel reports changes by itself.',
  },
  'too-many-results': {
    status: 409,
    message: 'You have too many saved results.',
    hint: 'Remove one that is not needed any more.',
  },
  'too-many-saved': {
    status: 409,
    message: 'You have too many saved queries.',
    hint: 'Remove one that is not needed any more.',
  },
  'too-many-segments': {
    status: 502,
    message: 'The node lists segments without end.',
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
    hint: 'The link is cut off, or was not opened for a long time. Ask for it again.',
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
    message: 'The uploaded bytes are gone from the disk.',
    hint: 'Drop this upload and begin it again.',
  },
  'write-mode-off': {
    status: 400,
    message: 'The command writes, and write mode is off.',
    hint: 'Switch write mode on, or send "write": true.',
  },
  'wrong-checksum': {
    status: 460,
    message: 'The bytes that arrived have another checksum.',
    hint: 'Send the chunk again.',
  },
  'wrong-kind': { status: 400, message: 'The files are swapped.', hint: 'Swap the two uploads.' },
  'wrong-offset': {
    status: 409,
    message: 'The chunk does not begin where the upload ends.',
    hint: 'Continue at the offset in this answer.',
  },
  'wrong-password': {
    status: 403,
    message: 'The current password is wrong.',
    hint: 'Type the password that you signed in with.',
  },
  'wrong-size': {
    status: 400,
    message: 'The file is empty or too large.',
    hint: 'Import files that are neither empty nor larger than the limit.',
  },
} as const satisfies { readonly [code: string]: ErrorRow }

type ErrorCode = keyof typeof ERRORS

/** A refusal by its code. `detail` and `hint` say more of this case than the table does. */
export function problem(
  code: ErrorCode,
  { detail, ...options }: ProblemOptions & { detail?: string } = {},
): ProblemError {
  const { status, message, hint } = ERRORS[code]
  return new ProblemError(status, code, detail ?? message, { hint, ...options })
}
