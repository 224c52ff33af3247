export { QueuePage as default } from '../../../features/queue/queue-page.tsx'
