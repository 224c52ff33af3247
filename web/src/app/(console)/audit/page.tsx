export { AuditPage as default } from '../../../features/audit/audit-page.tsx'
