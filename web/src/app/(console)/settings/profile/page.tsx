export { ProfilePage as default } from '../../../../features/settings/profile-page.tsx'
