/** Texts of the list of keyboard shortcuts. */

export const help = {
  title: 'Keyboard shortcuts',
  singleKeysOff: 'Single-key shortcuts are turned off.',
  settings: 'Open settings',
  onPage: 'On this page',
  inPlace: 'In tables and dialogs',
  rows: 'Next and previous row of a table, also with the arrow keys',
  open: 'Open the row',
  select: 'Select the row',
  close: 'Close the topmost layer',
  newTab: 'In the palette: open in a new tab',
}
