export { NewImportPage as default } from '../../../../features/imports/new-import-page.tsx'
