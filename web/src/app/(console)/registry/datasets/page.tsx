export { DatasetsPage as default } from '../../../../features/registry/datasets-page.tsx'
