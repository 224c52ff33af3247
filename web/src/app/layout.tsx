import type { Metadata, Viewport } from 'next'
import { cookies } from 'next/headers'
import type { ReactNode } from 'react'
import { APPEARANCE_COOKIE, parseAppearance } from '../lib/appearance.ts'
import './globals.css'

export const metadata: Metadata = {
  applicationName: 'Vacancy',
  robots: { index: false, follow: false },
  referrer: 'no-referrer',
  formatDetection: { telephone: false, address: false, email: false, date: false },
}

export const viewport: Viewport = {
  width: 'device-width',
  initialScale: 1,
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#f7f6f2' },
    { media: '(prefers-color-scheme: dark)', color: '#101218' },
  ],
}

const END = 'document-end'

/** The document of every page. Theme and density come from a cookie, so that the first paint needs no script. */
export default async function RootLayout({ children }: { readonly children: ReactNode }) {
  const appearance = parseAppearance((await cookies()).get(APPEARANCE_COOKIE)?.value)
  return (
    <html lang="en" data-theme={appearance.theme} data-density={appearance.density}>
      <body>
        {/* Blocks rendering until the document is complete: rendering in pieces would lay it out several times. */}
        <link rel="expect" href={`#${END}`} blocking="render" />
        {children}
        <i id={END} hidden />
      </body>
    </html>
  )
}
