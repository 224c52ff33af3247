/** Texts of the banner about sources that did not respond, which loads with it. */

export const missing = ' Their values are missing below.'
export const known = 'Values of nodes that do not respond are missing below.'
export const silent = (silent: string, names: string) => `${silent}: ${names}`
