/* Faults at the n-th change of a folder, for any program: LD_PRELOAD=disk_faults.so.

FAULT_FOLDER  folder whose changes count (absolute, resolved)
FAULT_STATE   16 bytes shared by all processes: changes so far, and whether the fault is on (2: over)
FAULT_KIND    none | kill (the writing process) | kill_main (the session's leader) | kill_all (the process group) |
              interrupt (SIGINT to the process group) | full (from here on nothing grows)
FAULT_AT      which change, from 1
FAULT_ONLY    "operation name": only such changes to files with that in their names count
FAULT_PART    0..100: how much of a write gets through; other changes happen first from 50 on
FAULT_LOG     file for one line: operation and path of the change hit (of every change when the kind is none)

A change is an open that creates or truncates, write, truncate, fsync, rename, mkdir. Files named .progress.json* do not
count, since time decides when they are written; a full disk is full for them too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NONE, KILL, KILL_MAIN, KILL_ALL, INTERRUPT, FULL };
static const char *kinds[] = {"none", "kill", "kill_main", "kill_all", "interrupt", "full"};

static const char *folder, *logfile, *only_name;
static char only_what[32];
static size_t folder_length;
static enum kind kind;
static uint64_t at;
static int part;
static volatile uint64_t *state;

__attribute__((constructor)) static void start(void) {
    const char *name = getenv("FAULT_KIND"), *shared = getenv("FAULT_STATE");
    folder = getenv("FAULT_FOLDER");
    logfile = getenv("FAULT_LOG");
    if (!folder || !name || !shared || !logfile) { folder = NULL; return; }
    folder_length = strlen(folder);
    for (int i = 0; i < 6; i++) if (!strcmp(name, kinds[i])) kind = i;
    at = strtoull(getenv("FAULT_AT") ?: "0", NULL, 10);
    part = atoi(getenv("FAULT_PART") ?: "0");
    const char *only = getenv("FAULT_ONLY"), *space = only ? strchr(only, ' ') : NULL;
    if (space && space - only < (long)sizeof only_what) {
        memcpy(only_what, only, space - only);
        only_name = space + 1;
    }
    int fd = syscall(SYS_openat, AT_FDCWD, shared, O_RDWR | O_CLOEXEC, 0);
    void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) syscall(SYS_close, fd);
    if (memory == MAP_FAILED) folder = NULL; else state = memory;
}

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int inside(const char *path) {
    return !strncmp(path, folder, folder_length) && (path[folder_length] == '/' || !path[folder_length]);
}

static int by_name(int dirfd, const char *path, char *out) {
    if (!folder || !path) return 0;
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
    } else {
        char base[PATH_MAX], link[64];
        ssize_t n;
        if (dirfd == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
        n = readlink(link, base, sizeof base - 1);
        if (n < 0) return 0;
        base[n] = 0;
        if (snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    return inside(out);
}

static int by_fd(int fd, char *out) {
    char link[64];
    if (!folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n < 0) return 0;
    out[n] = 0;
    return inside(out);
}

static void note(const char *what, const char *path) {
    char line[PATH_MAX + 32];
    int n = snprintf(line, sizeof line, "%s %s\n", what, path);
    int fd = syscall(SYS_openat, AT_FDCWD, logfile, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return;
    syscall(SYS_write, fd, line, n);
    syscall(SYS_close, fd);
}

/* What to do at this change: 0 go on; 1 disk full; 2 the fault strikes here. */
static int counted(const char *what, const char *path) {
    const char *name = strrchr(path, '/');
    if (name && !strncmp(name + 1, ".progress.json", 14)) return state[1] == 1;
    if (name && !strncmp(name + 1, "..progress.json", 15)) return state[1] == 1;
    if (state[1] == 1) return 1;
    if (only_name && (strcmp(what, only_what) || !strstr(name ? name : path, only_name))) return 0;
    uint64_t n = __atomic_add_fetch(&state[0], 1, __ATOMIC_SEQ_CST);
    if (kind == NONE) { note(what, path); return 0; }
    if (n != at) return 0;
    note(what, path);
    if (kind == FULL) state[1] = 1;
    return 2;
}

static void strike(void) {
    switch (kind) {
    case KILL: kill(getpid(), SIGKILL); break;
    case KILL_MAIN: kill(getsid(0), SIGKILL); break;
    case KILL_ALL: killpg(getpgrp(), SIGKILL); break;
    case INTERRUPT: killpg(getpgrp(), SIGINT); break;
    default: break;
    }
}

#define NO_SPACE do { errno = ENOSPC; return -1; } while (0)

/* Everything but writes: happens wholly or not at all; `grows` is whether a full disk refuses it later on too. */
#define CHANGE(what, path, grows, call)                       \
    do {                                                      \
        int hit = counted(what, path);                        \
        if (hit == 1 && (grows)) NO_SPACE;                    \
        if (hit != 2) return call;                            \
        if (kind == FULL) NO_SPACE;                           \
        if (part < 50) { strike(); return call; }             \
        __typeof__(call) result = call;                       \
        int saved = errno;                                    \
        strike();                                             \
        errno = saved;                                        \
        return result;                                        \
    } while (0)

#define OPEN(name, symbol, at_fd, signature, arguments)                                            \
    int name signature {                                                                           \
        static int (*f)() = NULL;                                                                  \
        if (!f) f = real(symbol);                                                                  \
        mode_t mode = 0;                                                                           \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                                     \
            va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list);        \
        }                                                                                          \
        char full[PATH_MAX];                                                                       \
        if (!(flags & (O_CREAT | O_TRUNC)) || !by_name(at_fd, path, full)) return f arguments;     \
        if (!(flags & O_TRUNC) && !access(path, F_OK)) return f arguments;                         \
        CHANGE("open", full, 0, f arguments);                                                      \
    }

OPEN(open, "open", AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, "open64", AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, "openat", dirfd, (int dirfd, const char *path, int flags, ...), (dirfd, path, flags, mode))
OPEN(openat64, "openat64", dirfd, (int dirfd, const char *path, int flags, ...), (dirfd, path, flags, mode))

/* Writes: part of the bytes may get through before the fault. `some` writes that many. */
#define WRITE(fd, count, whole, some)                          \
    do {                                                       \
        char full[PATH_MAX];                                   \
        if (!by_fd(fd, full)) return whole;                    \
        int hit = counted("write", full);                      \
        if (hit == 1) NO_SPACE;                                \
        if (hit != 2) return whole;                            \
        if (kind == INTERRUPT) { strike(); return whole; }     \
        size_t through = (count) * part / 100;                 \
        ssize_t result = through ? some : 0;                   \
        if (kind == FULL) { if (!through) NO_SPACE; return result; } \
        /* Where another process is killed than the one that writes, this one goes on after a short write. */ \
        strike();                                              \
        return through ? result : whole;                       \
    } while (0)

ssize_t write(int fd, const void *data, size_t count) {
    static ssize_t (*f)(int, const void *, size_t) = NULL;
    if (!f) f = real("write");
    WRITE(fd, count, f(fd, data, count), f(fd, data, through));
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t offset) {
    static ssize_t (*f)(int, const void *, size_t, off64_t) = NULL;
    if (!f) f = real("pwrite64");
    WRITE(fd, count, f(fd, data, count, offset), f(fd, data, through, offset));
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset) { return pwrite64(fd, data, count, offset); }

ssize_t writev(int fd, const struct iovec *parts, int n) {
    static ssize_t (*f)(int, const struct iovec *, int) = NULL;
    if (!f) f = real("writev");
    size_t first = n ? parts[0].iov_len : 0;
    struct iovec one = {n ? parts[0].iov_base : NULL, first * part / 100};
    WRITE(fd, first, f(fd, parts, n), f(fd, &one, 1));
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t count) {
    static ssize_t (*f)(int, int, off64_t *, size_t) = NULL;
    if (!f) f = real("sendfile64");
    struct stat info;
    size_t size = !fstat(in, &info) && (size_t)info.st_size < count ? (size_t)info.st_size : count;
    WRITE(out, size, f(out, in, offset, count), f(out, in, offset, through));
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count) { return sendfile64(out, in, offset, count); }

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t count, unsigned flags) {
    static ssize_t (*f)(int, off64_t *, int, off64_t *, size_t, unsigned) = NULL;
    if (!f) f = real("copy_file_range");
    struct stat info;
    size_t size = !fstat(in, &info) && (size_t)info.st_size < count ? (size_t)info.st_size : count;
    WRITE(out, size, f(in, in_at, out, out_at, count, flags), f(in, in_at, out, out_at, through, flags));
}

#define ON_FD(type, name, grows, signature, arguments)                  \
    type name signature {                                               \
        static type (*f)() = NULL;                                      \
        if (!f) f = real(#name);                                        \
        char full[PATH_MAX];                                            \
        if (!by_fd(fd, full)) return f arguments;                       \
        CHANGE(#name, full, grows, f arguments);                        \
    }

ON_FD(int, fsync, 0, (int fd), (fd))
ON_FD(int, fdatasync, 0, (int fd), (fd))
ON_FD(int, ftruncate, 0, (int fd, off_t length), (fd, length))
ON_FD(int, ftruncate64, 0, (int fd, off64_t length), (fd, length))

int rename(const char *from, const char *to) {
    static int (*f)(const char *, const char *) = NULL;
    if (!f) f = real("rename");
    char full[PATH_MAX];
    if (!by_name(AT_FDCWD, to, full)) return f(from, to);
    CHANGE("rename", full, 0, f(from, to));
}

int renameat(int a, const char *from, int b, const char *to) {
    static int (*f)(int, const char *, int, const char *) = NULL;
    if (!f) f = real("renameat");
    char full[PATH_MAX];
    if (!by_name(b, to, full)) return f(a, from, b, to);
    CHANGE("rename", full, 0, f(a, from, b, to));
}

int mkdir(const char *path, mode_t mode) {
    static int (*f)(const char *, mode_t) = NULL;
    if (!f) f = real("mkdir");
    char full[PATH_MAX];
    if (!by_name(AT_FDCWD, path, full) || !access(path, F_OK)) return f(path, mode);
    CHANGE("mkdir", full, 1, f(path, mode));
}

int mkdirat(int dirfd, const char *path, mode_t mode) {
    static int (*f)(int, const char *, mode_t) = NULL;
    if (!f) f = real("mkdirat");
    char full[PATH_MAX];
    if (!by_name(dirfd, path, full)) return f(dirfd, path, mode);
    CHANGE("mkdir", full, 1, f(dirfd, path, mode));
}
