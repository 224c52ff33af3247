// Runs programs in another root file system, as a container would: read-only but for the folders that are mounted.

/** Mounts in a mount namespace of its own, which ends with the program: `$1` root, `$2` user, then pairs of folder and place. */
const STEPS = `
root=$1 user=$2; shift 2
mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" || exit
mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/tmp" || exit
while [ "$1" != -- ]; do mount --bind "$1" "$root$2" && shift 2 || exit; done
shift
exec chroot --userspec="$user" "$root" "$@"`

/**
 * @param root folder of the file system, which is not changed
 * @param folders places in it, each with the folder of this machine that is seen there
 * @param user numbers of user and group, as in `12345:12345`
 * @returns the words of a command line
 */
export function inRoot({ root, folders, user }, words) {
  const mounts = Object.entries(folders).flatMap(([place, folder]) => [folder, place])
  return ['unshare', '--mount', 'sh', '-c', STEPS, 'sh', root, user, ...mounts, '--', ...words]
}
