import { configText } from './config-text.ts'

/** With the unit that its key names; the value as it is configured is in the tooltip. */
export function ConfigValue({ name, value }: { readonly name: string; readonly value: string }) {
  const text = configText(name, value)
  return (
    <code className="break-all font-mono" {...(text !== value && { 'data-tip': value })}>
      {text}
    </code>
  )
}
