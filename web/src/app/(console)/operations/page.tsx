export { OperationsPage as default } from '../../../features/operations/operations-page.tsx'
