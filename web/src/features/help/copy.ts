/** Texts of the list of keyboard shortcuts. */

export const help = {
  title: 'Keyboard shortcuts',
  singleKeysOff: 'Single-key shortcuts are turned off.',
  settings: 'Open settings',
  onPage: 'On this page',
  inPlace: 'In tables and dialogs',
  open: 'Open the row',
  select: 'Select the row',
  confirm: 'In a plan: run it',
  close: 'Close the topmost layer',
  newTab: 'In the palette: open in a new tab',
}
