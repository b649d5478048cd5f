// Verbs of other people's tools that remove, open or publish something: containers, clusters, clouds, databases, disks, users,
// services, packages. Each table says by program what to ask about, on its words joined by single blanks.
import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { printedBy } from "../analysis/shells.ts";
import { oncePerScene, type Rule, type RuleGroup } from "../scene.ts";

/** On everything behind the program's name, global options of the common tools taken out. */
export type Table = Readonly<Record<string, RegExp>>;

/** More words than a verb and its options need are not looked at. */
const MAX_WORDS = 200;

/** Options in front of the verb that own the next word. */
const GLOBAL =
  /^(?:--(?:context|namespace|kubeconfig|cluster|profile|region|project|account|host|config|log-level|prefix|filter|cwd|dir|repo|registry|manifest-path|chdir|subscription|resource-group|output|format|zone|git-dir|work-tree)|-[cnCRHhpu])$/;

/** Longer texts are looked at piece by piece, so that no pattern costs the square of them. */
const PIECE_CHARS = 4000;
const OVERLAP_CHARS = 200;

function pieces(text: string): readonly string[] {
  const plain = text.replace(/\s+/g, " ");
  const found = [plain.slice(0, PIECE_CHARS)];
  for (let at = PIECE_CHARS; at < plain.length; at += PIECE_CHARS)
    found.push(` ${plain.slice(at - OVERLAP_CHARS, at + PIECE_CHARS)}`);
  return found;
}

/** The words, verb first: `kubectl -n web delete pod x` begins with `delete`. */
function verbFirst(args: readonly string[]): string {
  let at = 0;
  while (at < args.length && (args[at] ?? "").startsWith("-")) at += GLOBAL.test(args[at] ?? "") ? 2 : 1;
  return [...args.slice(at), ...args.slice(0, at)].join(" ");
}

const HARMLESS =
  /(?:^|\s)(?:--help|-h$|--dry-run(?:=(?!none|false)\S+)?|--dryrun|--version|--check|--list|--what-if)(?=\s|$)/;

export function tableRule(key: string, table: Table): Rule {
  return {
    key,
    matches: (scene) =>
      callsOf(scene).some(({ program, text, verbFirst }) => {
        const pattern = Object.hasOwn(table, program) ? table[program] : undefined;
        if (!pattern || HARMLESS.test(text)) return false;
        return [...pieces(verbFirst), ...pieces(text)].some((piece) => pattern.test(piece));
      }),
  };
}

interface Call {
  readonly program: string;
  readonly text: string;
  readonly verbFirst: string;
}

/** Every program of the line, those that only run another one too. */
const callsOf = oncePerScene((scene): readonly Call[] => {
  const piped = new Map(
    scene.pipelines.flatMap((stages) =>
      stages.slice(1).flatMap((stage, index) => {
        const texts = (stages[index] ?? []).flatMap(printedBy);
        return texts.length === 0 ? [] : stage.map((invocation) => [invocation, texts] as const);
      }),
    ),
  );
  return scene.invocations.flatMap((invocation) => {
    const inputs = [...inputTexts(invocation), ...(piped.get(invocation) ?? [])];
    const own = { program: invocation.program, args: [...argTexts(invocation), ...inputs] };
    return [own, ...invocation.via].map(({ program, args }) => {
      const words = args.slice(0, MAX_WORDS);
      return { program, text: words.join(" "), verbFirst: verbFirst(words) };
    });
  });
});

const inputTexts = ({ redirects }: Invocation) =>
  redirects.flatMap(({ operator, heredoc, target }) => heredoc?.body ?? (operator === "<<<" ? [target] : []));

export const every = (programs: string, pattern: RegExp): Table =>
  Object.fromEntries(programs.split(" ").map((program) => [program, pattern]));

const HOST_ACCESS =
  /^(?:compose )?(?:container )?(?:run|create|exec|build)\b.*?(?:--privileged(?!=false)|--cap-add[= ](?:all|sys_admin|sys_ptrace|sys_module|dac_read_search|net_admin)|--(?:pid|userns|uts)[= ]host|--security-opt[= ]\S{0,200}(?:unconfined|disable)|--device[= ]\/dev\/(?:sd|nvme|vd|mem|kmem|mapper)|docker\.sock|podman\.sock|containerd\.sock|(?:-v|--volume|--mount)[= ]?(?:type=bind,(?:source|src)=)?(?:\/|\/etc|\/root|\/home|\/var|\/usr|\/boot|\/dev|\/proc|\/sys|~|\$HOME|\$\{HOME\}|\/home\/[^/:\s]+|(?:~|\$HOME)\/\.(?:ssh|aws|gnupg|kube|docker|hermes)\S{0,200})(?:\/)?(?:[:,]))/i;

const CONTAINERS: Table = {
  ...every(
    "docker podman nerdctl",
    /^(?:system (?:prune|reset)|volume (?:rm|remove|prune)|container prune|image prune\b.*\s(?:-[a-z]*a|--all)|images? rm\b.*\s(?:-f|--force)|rmi\b.*\s(?:-[a-z]*f|--force)|(?:container )?rm\b.*\s(?:-[a-z]*[va]|--volumes|--all)|swarm leave|stack rm|service rm|secret rm|config rm|node rm|network prune|pod (?:rm|kill|stop)|machine (?:rm|reset)|compose rm|plugin rm|context rm|(?:container )?(?:rm|rmi)\b.*[$`])/,
  ),
  ...every(
    "lxc incus",
    /^(?:delete|stop|rebuild|storage (?:delete|volume delete)|network delete|profile delete|config device add .*source=\/)/,
  ),
  ...every("lxc-destroy lxc-stop k3s-uninstall.sh rke2-uninstall.sh", /^/),
  vagrant: /^(?:destroy|box remove|snapshot (?:delete|restore))/,
  multipass: /^(?:delete|purge)/,
  virsh: /^(?:destroy|undefine|vol-delete|pool-delete|snapshot-delete|reset)/,
  vboxmanage: /^(?:unregistervm|closemedium|controlvm \S+ poweroff|snapshot \S+ delete)/i,
  machinectl: /^(?:terminate|remove|kill|poweroff)/,
  ...every("limactl colima minikube", /^(?:delete|prune|factory-reset)/),
  ...every("kind k3d ctlptl", /^(?:delete|cluster delete|node delete)/),
  crictl: /^(?:rm|rmp|rmi|stop|stopp)/,
  ctr: /(?:^|\s)(?:rm|delete|kill|--privileged)(?=\s|$)/,
  buildah: /^(?:rm|rmi|prune)/,
};

const CLUSTERS: Table = {
  ...every(
    "kubectl oc k3s kubectl.exe",
    /^(?:kubectl )?(?:delete|drain|cordon|taint|replace\b.*--force|scale\b.*--replicas[= ]0\b|rollout (?:undo|restart)|patch|edit|set (?:image|env)|certificate approve|create (?:cluster)?rolebinding|auth reconcile|apply\b.*(?:-f ?|--filename[= ])https?:|create\b.*(?:-f ?|--filename[= ])https?:|apply\b.*--(?:prune|force)|run\b.*--privileged|config (?:delete|unset)|adm |label\b.*--overwrite|debug node)/,
  ),
  helm: /^(?:uninstall|delete|del|un|rollback|upgrade\b.*--force|plugin (?:install|uninstall)|repo remove)/,
  helmfile: /^(?:destroy|delete)/,
  kubeadm: /^(?:reset|token delete)/,
  argocd: /^(?:app (?:delete|rollback|terminate-op)|cluster rm|repo rm|proj delete)/,
  flux: /^(?:uninstall|delete)/,
  ...every("istioctl linkerd", /^(?:uninstall|uninject|x uninstall)/),
  velero: /^(?:backup|restore|schedule) delete|^uninstall/,
  nomad: /^(?:job stop|stop|system gc|node (?:drain|purge)|namespace delete|volume (?:delete|deregister)|operator)/,
  consul: /^(?:kv delete|leave|force-leave|acl \S+ delete|operator)/,
  vault:
    /^(?:delete|kv (?:delete|destroy|metadata delete)|secrets disable|auth disable|operator|lease revoke|policy delete|token revoke)/,
  ...every("eksctl kops", /^delete/),
  talosctl: /^(?:reset|upgrade|shutdown|reboot)/,
  etcdctl: /^(?:del|member remove|user delete|role delete|auth disable)/,
  ...every(
    "terraform tofu terragrunt",
    /^(?:destroy|apply\b.*(?:-auto-approve|-destroy)|run-all (?:destroy|apply)|state (?:rm|push|mv)|workspace delete|force-unlock|taint|import)/,
  ),
  pulumi: /^(?:destroy|up\b.*(?:-y|--yes|-f|--skip-preview)|stack rm|state delete|cancel)/,
  ...every(
    "ansible ansible-playbook",
    /^(?:(?!\s(?:-a|--args)[= ]).)*(?:^|\s)(?:-a|--args)[= ].*(?:\brm\s+-|state=absent|\bmkfs|\breboot|\bshutdown)|-m (?:reboot|ansible\.builtin\.reboot)/,
  ),
  ...every("salt salt-ssh", /cmd\.run|state\.(?:apply|highstate)|system\.(?:reboot|shutdown)/),
};

const CLOUDS: Table = {
  aws: /^(?:\S+ (?:delete|terminate|remove|deregister|detach|disable|purge|revoke|reset|stop|reboot|cancel|schedule-key-deletion)(?:-|\b)|s3 (?:rm|rb)|s3 sync\b.*--delete|iam (?:create-(?:access-key|user|login-profile|policy-version)|attach-|put-|add-user|update-assume|update-login)|s3api put-(?:bucket-(?:policy|acl)|public-access-block|object-acl)|ec2 (?:authorize-security-group|modify-instance-attribute)|ssm send-command|lambda (?:update-function|add-permission)|organizations \S*(?:leave|remove|close))/,
  ...every(
    "gcloud",
    /(?:^|\s)(?:delete|remove-iam-policy-binding|add-iam-policy-binding|set-iam-policy|reset|abandon|purge)(?=\s|$)|^storage (?:rm|buckets delete)|^compute (?:ssh|instances (?:stop|reset|suspend))|^projects undelete|service-accounts keys create/,
  ),
  gsutil: /^(?:-m )?(?:rm|rb|mv|acl|iam|defacl|rsync\b.*-d\b)/,
  bq: /^(?:rm|query\b.*\b(?:drop|truncate|delete)\b)/i,
  az: /(?:^|\s)(?:delete|purge|deallocate|remove|reset|revoke|disable)(?=\s|$)|^role assignment create|^ad (?:sp|app) create|^vm (?:stop|restart|run-command)/,
  doctl: /(?:^|\s)(?:delete|destroy|rm|d|power-off|shutdown)(?=\s|$)/,
  ...every(
    "hcloud linode-cli scw ibmcloud oci vultr-cli exo openstack aliyun",
    /(?:^|\s)(?:delete|destroy|terminate|remove|purge|poweroff|reset|rebuild|rm)(?=\s|$)/,
  ),
  heroku:
    /^(?:apps:destroy|destroy|pg:reset|pg:killall|addons:destroy|config:unset|domains:remove|ps:stop|run\b|releases:rollback|access:add)/,
  ...every(
    "fly flyctl",
    /^(?:destroy|(?:apps?|machines?|volumes?|postgres|secrets) (?:destroy|delete|remove|unset|kill)|scale count 0)/,
  ),
  vercel: /^(?:remove|rm|project rm|env rm|domains rm|--prod|deploy\b.*--prod|rollback|alias rm)|--prod\b/,
  netlify: /^(?:sites:delete|env:unset|deploy\b.*--prod|blobs:delete)/,
  wrangler:
    /^(?:delete|(?:kv|r2|d1|queues|secret|pages|vectorize|hyperdrive)\b.* delete|d1 execute\b.*\b(?:drop|delete|truncate)\b|rollback)/i,
  railway: /^(?:down|delete|volume delete)/,
  supabase: /^(?:db reset|projects delete|functions delete|branches delete|stop\b.*--no-backup)/,
  firebase: /^(?:firestore:delete|database:remove|projects:delete|hosting:disable|functions:delete|auth:import)/,
  ...every("cdk cdktf", /^destroy/),
  ...every("serverless sls", /^remove/),
  sam: /^delete/,
  ...every("s3cmd", /^(?:rb|del|rm|sync\b.*--delete-removed|setacl)/),
  mc: /^(?:rm|rb|mirror\b.*--remove|admin |anonymous set)/,
  rclone: /^(?:delete|purge|sync|move|cleanup|rmdirs|deletefile)/,
  b2: /^(?:delete|rm|bucket delete|sync\b.*--delete)/,
  gh: /^(?:repo (?:delete|archive|rename|edit\b.*--visibility)|release delete|secret (?:delete|remove)|variable delete|gist delete|issue (?:delete|transfer)|run delete|cache delete|codespace delete|ssh-key (?:add|delete)|gpg-key (?:add|delete)|api\b.*(?:-X ?|--method[= ])(?:delete|put|patch)|auth (?:token|logout)|extension install|ruleset|label delete)/i,
  glab: /^(?:repo (?:delete|archive|transfer)|release delete|api\b.*(?:-X ?|--method[= ])delete|variable delete|ci delete|ssh-key (?:add|delete))/i,
};

const DATABASES: Table = {
  "redis-cli":
    /(?:^|\s)(?:flushall|flushdb|shutdown|debug (?:segfault|sleep)|config set|config rewrite|script flush|swapdb|replicaof|slaveof|module load|cluster (?:reset|flushslots)|acl (?:setuser|deluser))(?=\s|$)/i,
  ...every("valkey-cli keydb-cli", /(?:^|\s)(?:flushall|flushdb|shutdown|config set|module load)(?=\s|$)/i),
  ...every(
    "mongosh mongo",
    /dropDatabase|\.drop\(|\.drop(?:Index|Indexes|User|AllUsers|Role)|deleteMany\(\s*(?:\{\s*)?(?:\}\s*)?\)|\.remove\(\s*(?:\{\s*)?(?:\}\s*)?\)|shutdownServer|createUser|grantRoles|db\.eval|fsyncLock/,
  ),
  ...every("mongorestore pg_restore", /--drop|--clean|(?:^|\s)-c(?=\s|$)/),
  ...every("dropdb dropuser pg_dropcluster pg_resetwal mysql_install_db initdb", /^/),
  pg_ctl: /^(?:stop|restart|promote|kill|initdb)/,
  mysqladmin: /(?:^|\s)(?:drop|shutdown|password|flush-privileges|kill)(?=\s|$)/,
  ...every(
    "psql mysql mariadb cqlsh clickhouse-client cockroach duckdb sqlcmd isql usql",
    /\bdrop\s+(?:user|role|keyspace|owned|extension|view|function|collection|materialized)|\b(?:alter|create)\s+(?:user|role)\b|\bgrant\s+all\b|\balter\s+table\b(?:(?!\balter\s+table\b).)*\bdrop\b|\bcopy\b(?:(?!\bcopy\b).)*\b(?:to|from)\s+program\b|\binto\s+(?:outfile|dumpfile)\b|(?:^|[\s;"'])truncate\s+\w|\bpg_terminate_backend\b|\bload_file\b|\bpg_read_file\b|\bupdate\s+[\w".`]+\s+set\b(?!(?:(?!\bupdate\s).)*\bwhere\b)/i,
  ),
  ...every(
    "rails rake bin/rails",
    /(?:^|\s)db:(?:drop|reset|purge|truncate_all|schema:load|migrate:reset|setup|rollback)(?=\s|:|$)/,
  ),
  bundle: /^exec (?:rails|rake) db:(?:drop|reset|purge|truncate_all|schema:load|migrate:reset)/,
  php: /artisan (?:migrate:(?:fresh|reset|refresh|rollback)|db:wipe)|bin\/console doctrine:(?:database|schema):drop/,
  ...every(
    "prisma sequelize sequelize-cli typeorm knex drizzle-kit mikro-orm",
    /(?:migrate reset|db push\b(?:(?!db push\b).)*(?:--force-reset|--accept-data-loss)|db:drop|db:migrate:undo:all|schema:drop|migrate:rollback\b(?:(?!migrate:rollback\b).)*--all|(?:^|\s)drop(?=\s|$))/,
  ),
  ...every(
    "npx bunx pnpx yarn pnpm",
    /(?:prisma migrate reset|prisma db push\b(?:(?!db push\b).)*(?:--force-reset|--accept-data-loss)|sequelize(?:-cli)? db:(?:drop|migrate:undo:all)|typeorm schema:drop|knex migrate:rollback\b(?:(?!migrate:rollback\b).)*--all)/,
  ),
  ...every("python python3", /manage\.py (?:flush|reset_db|sqlflush|migrate \S+ zero)/),
  alembic: /^downgrade/,
  flyway: /(?:^|\s)(?:clean|undo|repair)(?=\s|$)/,
  liquibase: /drop-?all|rollback/i,
  ...every(
    "kafka-topics kafka-topics.sh kafka-delete-records kafka-delete-records.sh kafka-consumer-groups",
    /--delete|--reset-offsets/,
  ),
  rabbitmqctl: /^(?:reset|force_reset|delete_\w+|purge_queue|stop_app|add_user|change_password|set_permissions|stop)/,
  ...every("nats", /^(?:stream|consumer|kv|object) (?:rm|del|purge)/),
  influx: /^(?:delete|bucket delete|org delete|user delete)|drop (?:database|measurement|series)/i,
};

const DISKS: Table = {
  ...every(
    "sfdisk sgdisk gdisk cgdisk cfdisk",
    /^(?!(?:.*\s)?(?:-l|--list|-p|--print|-d|--dump|-J|--json|-i|--info|-V|-v)(?:\s|$)).*\S/,
  ),
  fdisk: /^(?!(?:.*\s)?(?:-l|--list|-x|-s|-V)(?:\s|$)).*\/dev\//,
  parted: /(?:^|\s)(?:mklabel|mktable|mkpart|rm|resizepart|set|rescue|name)(?=\s|$)/,
  ...every(
    "lvremove vgremove pvremove lvreduce vgreduce lvresize pvcreate vgcreate vgmerge blkdiscard grub-install flashrom efibootmgr badblocks",
    /\S/,
  ),
  mdadm: /--(?:zero-superblock|stop|create|fail|remove|grow|build)|(?:^|\s)-[SCfrG](?=\s|$)/,
  zpool: /^(?:destroy|labelclear|remove|detach|offline|create|split|export)/,
  zfs: /^(?:destroy|rollback|rename|unload-key)/,
  btrfs: /^(?:subvolume delete|device (?:delete|remove)|filesystem resize|check\b.*--repair|rescue|balance)/,
  cryptsetup:
    /(?:^|\s)(?:luksformat|lukserase|erase|lukskillslot|luksremovekey|luksaddkey|luksheaderrestore|reencrypt|format)(?=\s|$)/i,
  dmsetup: /^(?:remove|remove_all|wipe_table|clear)/,
  hdparm: /--security-|--trim|--write-sector|-[YyNS]/,
  nvme: /^(?:format|sanitize|delete-ns|write|fw-)/,
  diskutil: /^(?:erase|partition|reformat|zero|random|secure|apfs (?:delete|erase)|unmountdisk force)/i,
  ...every("resize2fs tune2fs xfs_repair e2fsck fsck", /(?:^|\s)(?:-[a-zA-Z]*[LfyjO]|\/dev\/\S+ \S)/),
  ...every("shred srm wipe", /^(?!--(?:help|version)$).*\S/),
  swapoff: /\S/,
  umount: /(?:^|\s)-[a-z]*[alf]/,
  mount: /remount|--bind|--rbind|(?:^|\s)-o\s*\S*(?:bind|remount)/,
  fstrim: /(?:^|\s)-a/,
};

const BACKUPS: Table = {
  restic: /(?:^|\s)(?:forget|prune|key remove)(?=\s|$)/,
  rustic: /(?:^|\s)(?:forget|prune)(?=\s|$)/,
  borg: /(?:^|\s)(?:delete|prune|compact|recreate)(?=\s|$)/,
  borgmatic: /^(?:prune|delete|compact|repo-delete)/,
  kopia:
    /^(?:snapshot (?:delete|expire)|repository (?:disconnect|set-parameters)|blob delete|policy (?:set|delete)|maintenance)/,
  duplicity: /^(?:remove-|cleanup)/,
  duplicacy: /^prune/,
  "rdiff-backup": /--remove-older-than|^remove/,
  bup: /^(?:rm|gc|prune-older)/,
  tarsnap: /(?:^|\s)(?:-d|--nuke|--fsck-prune)(?=\s|$)/,
  snapper: /(?:^|\s)(?:delete|remove|rm|cleanup|delete-config)(?=\s|$)/,
  timeshift: /--delete/,
  vssadmin: /^(?:delete|resize)/i,
  wbadmin: /^(?:delete|disable)/i,
  wmic: /shadowcopy\s+delete/i,
  bcdedit: /\/(?:set|delete)/i,
  pgbackrest: /(?:^|\s)(?:expire|stanza-delete|stop)(?=\s|$)/,
  "wal-g": /^delete/,
  barman: /^delete/,
  "proxmox-backup-client": /^(?:snapshot )?(?:forget|prune)/,
  vzdump: /--prune-backups|--remove/,
  sanoid: /--prune-snapshots/,
  zrepl: /^(?:zfs-abstraction release|test prune)/,
  btrbk: /^(?:prune|clean)/,
  rsnapshot: /^sync/,
  "backup-manager": /--purge/,
  "etcd-backup": /delete/,
};

const USERS: Table = {
  ...every(
    "useradd adduser usermod userdel deluser groupadd addgroup groupmod groupdel delgroup gpasswd chpasswd newusers vipw vigr chsh pwconv pwunconv grpconv newgidmap sudoedit",
    /\S|^$/,
  ),
  su: /^(?!(?:.*\s)?(?:-\w*c|--command|--session-command)(?:[\s=]|$))/,
  passwd: /^(?!(?:.*\s)?(?:-S|--status)(?:\s|$))/,
  chage: /^(?!(?:.*\s)?(?:-l|--list)(?:\s|$)).*\S/,
  visudo: /^(?!(?:.*\s)?(?:-c|--check)(?:\s|$))/,
  faillock: /--reset/,
  dscl: /-(?:create|delete|passwd|append|merge|change)/,
  dseditgroup: /-o/,
  sysadminctl: /-(?:adduser|deleteuser|resetpasswordfor)/i,
  net: /^(?:user|localgroup) .*\/(?:add|delete|active)|^user \S+ \S/i,
  loginctl: /^(?:terminate-|kill-|enable-linger|disable-linger)/,
  ...every("realm authselect pam-auth-update", /^(?!list)\S/),
};

const SERVICES: Table = {
  systemctl:
    /^(?:enable|reenable|link|edit|set-property|set-default|isolate|emergency|rescue|kill|daemon-reexec|import-environment|set-environment|preset|revert|add-wants|add-requires|clean|switch-root|suspend|hibernate)\b/,
  launchctl: /^(?:load|bootstrap|submit|enable|unload|bootout|remove|disable|kill|setenv|config|limit)\b/,
  ...every("update-rc.d chkconfig rc-update insserv", /^(?!--list)\S+ \S|(?:add|del|on|off|enable|disable|remove)/),
  sc: /^(?:create|delete|config|stop)/i,
  schtasks: /\/(?:create|change|run|end)/i,
  "systemd-run": /--on-|--timer-property/,
  ...every("insmod rmmod kexec", /\S/),
  modprobe: /^(?!(?:.*\s)?(?:-n|--show|--show-depends|-D|-c|--showconfig|--dry-run)(?:\s|$)).*\S/,
  sysctl: /(?:^|\s)(?:-w|--write|-p|--system|--load\S*)(?=\s|$)|\w=/,
  ...every("setenforce aa-disable aa-teardown aa-complain apparmor_parser semanage setsebool auditctl setcap", /\S/),
  chattr: /(?:^|\s)[-+=][a-zA-Z]*[iauA]/,
  chmod: /(?:^|\s)(?:[0-7]?[4-7][0-7]{3}|[ugoa]*[+=][rwxXt]*s)/,
  setfacl: /(?:^|\s)-[a-zA-Z]*[RbkMxm]/,
  ...every("timedatectl hostnamectl localectl", /^set-/),
  date: /(?:^|\s)(?:-s|--set)(?:[= ]|$)/,
  hwclock: /--(?:set|systohc|hctosys)|-[sw]\b/,
  ip: /^(?:(?:-\S+ )*)(?:link set .*\bdown|link (?:del|delete)|route (?:flush|del|delete|replace|add default)|addr(?:ess)? (?:flush|del)|rule (?:flush|del)|netns (?:del|delete)|neigh flush)/,
  ifconfig: /\sdown\b/,
  nmcli: /(?:^|\s)(?:delete|down|off|disconnect)(?=\s|$)/,
  "firewall-cmd": /--(?:remove|permanent|panic-on|set-default-zone|direct|reload|complete-reload|zone=\S{1,80} --add)/,
  ...every("iptables ip6tables", /(?:^|\s)-(?:P|D|Z)(?=\s|$)|-[AI]\s(?:(?!-[AI]\s).)*-j\s+DROP/),
  history: /(?:^|\s)-[a-z]*[cdw]/,
  journalctl: /--(?:vacuum|rotate|flush)/,
  ...every("at batch", /^(?!(?:-l|-c|-V)(?:\s|$))/),
  ...every("gcore reptyr", /\S/),
  gdb: /(?:^|\s)(?:-p|--pid)/,
  ...every("strace ltrace", /(?:^|\s)-p/),
  ssh: /(?:^|\s)-[fNTCvqnAaXx46]*R\s?\S/,
  ...every("ngrok bore lt localtunnel", /^(?!(?:config|version|update|help)\b)\S/),
  cloudflared: /^tunnel/,
  tailscale: /^(?:funnel|serve|set|up)\b/,
  spctl: /--(?:master|global)-disable|--add/,
  csrutil: /disable/,
  xattr: /-(?:r?d|c) |quarantine/,
  tccutil: /reset/,
  nsenter: /(?:-t|--target)[= ]?1\b/,
  tmutil: /^(?:delete|disable)/,
  ...every("apt apt-get aptitude dnf yum zypper microdnf", /^(?:remove|purge|autoremove|erase|downgrade|rm)(?=\s|$)/),
  dpkg: /(?:^|\s)(?:-r|-P|--remove|--purge|--force-\S+)(?=\s|$)/,
  rpm: /(?:^|\s)(?:-e|--erase|--nodeps)(?=\s|$)/,
  pacman: /(?:^|\s)-R/,
  apk: /^del/,
  ...every("snap flatpak", /^(?:remove|uninstall|purge)/),
};

const PUBLISHING: Table = {
  npm: /^(?:publish|unpublish|deprecate|dist-tag (?:add|rm)|owner (?:add|rm)|access (?:grant|set|revoke)|token (?:create|revoke)|hook add)(?=\s|$)/,
  ...every("pnpm bun lerna jsr vsce ovsx", /^(?:publish|unpublish)(?=\s|$)/),
  yarn: /^(?:npm )?publish/,
  ...every("changeset", /^publish/),
  ...every(
    "npx bunx pnpx",
    /^(?:-\S+ )*(?:changeset publish|lerna publish|semantic-release|np\b|release-it|vsce publish|jsr publish|gh-pages)/,
  ),
  ...every("semantic-release np release-it gh-pages", /^/),
  cargo: /^(?:publish|yank|owner)/,
  twine: /^upload/,
  ...every("poetry uv flit hatch pdm", /^(?:publish|upload)/),
  ...every(
    "python python3",
    /^(?:twine upload|setup\.py (?:(?!\bupload\b).)*\bupload\b).*-m|-m twine upload|^setup\.py\b.*\b(?:upload|register)\b|^upload\b.*-m twine/,
  ),
  gem: /^(?:push|yank|owner)/,
  ...every(
    "mvn mvnw gradle gradlew",
    /(?:^|\s)(?:deploy|publish|publishPlugins|release:perform|closeAndReleaseRepository)(?=\s|$)/,
  ),
  ...every("dotnet nuget", /^(?:nuget )?(?:push|delete)/),
  ...every("dart flutter", /^pub (?:publish|lish)/),
  mix: /^hex\.publish/,
  ...every("cabal stack luarocks anaconda opam", /^(?:upload|publish|sdist --upload)/),
  pod: /^trunk (?:push|delete)/,
  goreleaser: /^(?:release|publish)/,
  fastlane: /(?:^|\s)(?:deliver|pilot|supply|upload_to_\w+|release)(?=\s|$)/,
  eas: /^(?:submit|update)/,
  clasp: /^(?:deploy|push)/,
  helm: /^push/,
  gh: /^(?:release (?:create|upload|edit)|gist create|repo create\b.*--public|pr merge\b.*--admin|workflow run\b)/,
  glab: /^(?:release create|snippet create)/,
  hub: /^release create/,
};

const REPOSITORIES: Table = {
  git: /^(?:rm\b(?=.*\s(?:-[a-z]*f|--force)\b).*|update-ref\b.*\s-d\b|reflog (?:expire|delete)|gc\b.*--prune[= ]?(?:now|all)|prune\b|filter-branch|filter-repo|replace\b|worktree remove\b.*(?:-f|--force)|submodule deinit\b.*(?:-f|--force|--all)|read-tree\b.*--reset|checkout-index\b.*-f|push\b.*(?:--delete|\s-d\b|--prune|\s\+?:(?:refs\/heads\/)?(?:main|master|trunk|develop|prod\w*|release\S*|stable)\b)|lfs prune|notes (?:remove|prune)|symbolic-ref (?:-d|--delete))/,
  hg: /^(?:strip|purge|update\b.*(?:-C|--clean)|revert\b.*--all|rollback)/,
  svn: /^(?:revert\b.*-R|delete|rm|remove|cleanup\b.*--remove)/,
  jj: /^(?:abandon|op (?:abandon|restore))/,
  cmake: /-E (?:rm|remove|remove_directory)\b|^(?:rm|remove|remove_directory)\b.*-E/,
  rsync: /^(?!.*(?:^|\s)(?:[\w.-]+@)?[\w.-]+:\S).*--(?:delete\S*|remove-source-files)/,
  ...every("rimraf del-cli", /\S/),
  ...every("npx bunx pnpx yarn pnpm", /^(?:dlx |exec |run )?(?:rimraf|del-cli)\b/),
  tar: /--remove-files/,
  chmod: /^(?=.*(?:^|\s)(?:-[a-zA-Z]*R|--recursive))(?:-\S+ )*(?:0{1,4}|[ugoa]*-rwx|a?=)\s/,
  gpg: /--export-secret-(?:sub)?keys|--delete-secret/,
  openssl: /-in (?=\S{0,200}(?:\.ssh\/|id_(?:rsa|ecdsa|ed25519)))(?=.{0,300}-out )/,
  "ssh-keygen": /^(?:\S{1,80}\s){0,8}-p\s(?:\S{1,80}\s){0,8}-N(?:\s|$)/,
  "ssh-copy-id": /\S/,
  celery: /\bpurge\b/,
  dotnet: /^ef database drop/,
  ...every("xargs parallel", /\bredis-cli\s(?:\S{1,40}\s){0,6}(?:del|unlink|flush\w{0,8})\b/i),
  zip: /(?:^|\s)-(?=[a-ln-z]*m)[a-z]+(?=\s)/,
  "7z": /-sdel/,
  robocopy: /\/(?:mir|purge|move)/i,
  curl: /(?:\s|^)(?:-[a-zA-Z]*X ?|--request[= ])delete\b(?!.*(?:localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0))/i,
  ...every("http https xh", /^delete (?!(?:https?:\/\/)?(?:localhost|127\.0\.0\.1|:))/i),
};

export const destroyers: RuleGroup = {
  reason: "removes, opens or changes something that cannot simply be taken back",
  rules: [
    tableRule("container with host access", { ...every("docker podman nerdctl", HOST_ACCESS) }),
    tableRule("remove containers or their data", CONTAINERS),
    tableRule("change a cluster or its infrastructure", CLUSTERS),
    tableRule("remove or open cloud resources", CLOUDS),
    tableRule("remove or open databases", DATABASES),
    tableRule("change disks or volumes", DISKS),
    tableRule("remove backups or snapshots", BACKUPS),
    tableRule("change users or passwords", USERS),
    tableRule("change services or the system", SERVICES),
    tableRule("remove history or files by another tool", REPOSITORIES),
  ],
};

export const publishing: RuleGroup = {
  reason: "publishes something under your name",
  rules: [tableRule("publish a package or release", PUBLISHING)],
};
