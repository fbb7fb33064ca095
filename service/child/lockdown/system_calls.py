"""Numbers of the system calls that a model's process may not make."""

from collections.abc import Mapping
from dataclasses import dataclass

X86_64 = "x86_64"
AARCH64 = "aarch64"
# Calls from this number on are newer than these tables; nothing here needs them.
FIRST_UNKNOWN = 457


@dataclass(frozen=True)
class Machine:
    """A kind of processor: its name to the auditing system, and its numbers."""

    audit: int
    position: int

    def number(self, name: str) -> int | None:
        """Return the number of a call, or None if this machine has no such call."""
        return CALLS[name][self.position]


MACHINES: Mapping[str, Machine] = {X86_64: Machine(0xC000003E, 0), AARCH64: Machine(0xC00000B7, 1)}

# Of each its number on x86-64, and on aarch64.
CALLS: Mapping[str, tuple[int | None, int | None]] = {
    # Looked at with their arguments.
    "clone": (56, 220),
    "clone3": (435, 435),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    # Other programs and other processes.
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    # The network, and sockets of the machine.
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    # What is kept when a process ends, and seen by others.
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Files in ways that Landlock does not look at.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "truncate": (76, 45),  # Landlock knows it since version 3
    "sync": (162, 81),
    "syncfs": (306, 267),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "memfd_secret": (447, 447),
    # The tree of files itself.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    # Rooms and rights of its own.
    "unshare": (272, 97),
    "setns": (308, 268),
    "setuid": (105, 146),
    "setgid": (106, 144),
    "setreuid": (113, 145),
    "setregid": (114, 143),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "setgroups": (116, 159),
    "setfsuid": (122, 151),
    "setfsgid": (123, 152),
    "capset": (126, 91),
    "seccomp": (317, 277),
    "personality": (135, 92),
    "setrlimit": (160, 164),
    "setpriority": (141, 140),
    "getpriority": (140, 141),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    # Large parts of the kernel that no model needs.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "modify_ldt": (154, None),
    "lookup_dcookie": (212, 18),
    "uselib": (134, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    # The machine as a whole.
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "acct": (163, 89),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
