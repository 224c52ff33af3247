// Read by the kernel and by parameters.ts: valid in AssemblyScript and in TypeScript.

/** Columns that one search compares with a range, for filters without a bitmap. */
export const COLUMNS_MAX = 12
