// A library to preload (LD_PRELOAD) that counts, slows down, records, fails or ends a program at its file operations.
// Only operations that change something below FAULTS_ROOT count. tools/torture compiles and uses it.
//   FAULTS_ROOT=DIR      operations on paths below it count
//   FAULTS_MATCH=TEXT    … and only if a path contains this (MATCH with ^ before it: only if none does)
//   FAULTS_KINDS=A,B     … and only these kinds: open write fsync syncdir rename link delete mkdir truncate
//   FAULTS_AT=N          at the N-th of them:
//   FAULTS_DO=X          kill: SIGKILL before it; tear: half of a write, then SIGKILL; ENOSPC, EIO, EROFS: it fails;
//                        short: half of a write, and ENOSPC at the next
//   FAULTS_STICKY=1      all operations from the N-th on fail (with ENOSPC, those that free space still work)
//   FAULTS_SLOW=N        sleep N microseconds before each
//   FAULTS_NOTE=FILE     append a line when FAULTS_DO is done: kind and paths
//   FAULTS_TRACE=FILE    append a line per operation done: kind, sizes, paths, then the bytes written
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#undef fopen64
#undef open64

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // operations happen one after another, as recorded
static const char *root, *match, *kinds, *action;
static long at, slow, count;
static int sticky, error_number, trace = -1, note = -1, ready, failing;

static void start(void) {
  if (ready) return;
  ready = 1;
  root = getenv("FAULTS_ROOT");
  match = getenv("FAULTS_MATCH");
  kinds = getenv("FAULTS_KINDS");
  action = getenv("FAULTS_DO");
  if (!action) action = "";
  at = getenv("FAULTS_AT") ? atol(getenv("FAULTS_AT")) : 0;
  slow = getenv("FAULTS_SLOW") ? atol(getenv("FAULTS_SLOW")) : 0;
  sticky = getenv("FAULTS_STICKY") != NULL;
  error_number = !strcmp(action, "ENOSPC") || !strcmp(action, "short") ? ENOSPC
                 : !strcmp(action, "EIO")                              ? EIO
                 : !strcmp(action, "EROFS")                            ? EROFS
                                                                       : 0;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  const char* file = getenv("FAULTS_TRACE");
  if (file) trace = (int)syscall(SYS_openat, AT_FDCWD, file, flags, 0666);
  file = getenv("FAULTS_NOTE");
  if (file) note = (int)syscall(SYS_openat, AT_FDCWD, file, flags, 0666);
}

static void write_line(int fd, const char* kind, long long number, size_t size, const char* a, const char* b,
                       const void* data) {
  const int saved = errno;
  char line[2 * PATH_MAX + 100];
  const int length = snprintf(line, sizeof line, "%s\t%lld\t%zu\t%s\t%s\n", kind, number, size, a, b);
  struct iovec parts[2] = {{line, (size_t)length}, {(void*)data, size}};
  syscall(SYS_writev, fd, parts, 2);
  errno = saved;
}

// The absolute path of `path` below the folder `fd`; of the open file `fd` if `path` is NULL.
static const char* full(int fd, const char* path, char* buffer) {
  buffer[0] = 0;
  if (path && path[0] == '/') return strncpy(buffer, path, PATH_MAX - 1);
  if (!path || fd != AT_FDCWD) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = syscall(SYS_readlink, link, buffer, (size_t)PATH_MAX - 1);
    buffer[size > 0 ? size : 0] = 0;
  } else if (!getcwd(buffer, PATH_MAX)) {
    buffer[0] = 0;
  }
  if (path && strlen(buffer) + strlen(path) + 2 < PATH_MAX) {
    strcat(buffer, "/");
    strcat(buffer, path);
  }
  return buffer;
}

static int below_root(const char* a, const char* b) {
  return root && (!strncmp(a, root, strlen(root)) || !strncmp(b, root, strlen(root)));
}

static int counts(const char* kind, const char* a, const char* b) {
  if (!below_root(a, b) || (kinds && !strstr(kinds, kind))) return 0;
  if (match && match[0] == '^') return !strstr(a, match + 1) && !strstr(b, match + 1);
  return !match || strstr(a, match) || strstr(b, match);
}

static int frees(const char* kind) { return !strcmp(kind, "delete") || !strcmp(kind, "truncate"); }

enum { go_on, half_then_die, half };

// Called with the mutex held before each operation: may never return. -1: the operation is to fail.
static int before(const char* kind, const char* a, const char* b) {
  if (!counts(kind, a, b)) return go_on;
  ++count;
  if (slow) usleep((useconds_t)slow);
  if (failing) {
    failing = sticky;
    if (!(frees(kind) && error_number == ENOSPC)) {
      errno = error_number;
      return -1;
    }
  }
  if (!at || count != at) return go_on;
  if (note >= 0) write_line(note, kind, count, 0, a, b, NULL);
  const int writes = !strcmp(kind, "write");
  if (!strcmp(action, "tear") && writes) return half_then_die;
  if (!strcmp(action, "kill") || !strcmp(action, "tear")) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  if (!strcmp(action, "short")) {
    failing = 1;
    if (writes) return half;
  } else {
    failing = sticky;
  }
  if (!error_number || (frees(kind) && error_number == ENOSPC)) return go_on;
  errno = error_number;
  return -1;
}

static void record(const char* kind, const char* a, const char* b, long long offset, const void* data, size_t size) {
  if (trace >= 0 && below_root(a, b)) write_line(trace, kind, offset, size, a, b, data);
}

#define REAL(name) \
  static __typeof__(name)* real; \
  if (!real) real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)

#define BEGIN() \
  pthread_mutex_lock(&mutex); \
  start()
#define END(value) \
  do { \
    const int kept = errno; \
    pthread_mutex_unlock(&mutex); \
    errno = kept; \
    return value; \
  } while (0)

// ---- opening
static int is_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

#define OPEN_BODY(folder, call) \
  char a[PATH_MAX]; \
  mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list rest; \
    va_start(rest, flags); \
    mode = va_arg(rest, mode_t); \
    va_end(rest); \
  } \
  if (!is_writing(flags)) return call; \
  BEGIN(); \
  full(folder, path, a); \
  if (before("open", a, "") < 0) END(-1); \
  const int result = call; \
  if (result >= 0) record("open", a, "", flags& O_TRUNC ? 1 : 0, NULL, 0); \
  END(result)

int open(const char* path, int flags, ...) {
  REAL(open);
  OPEN_BODY(AT_FDCWD, real(path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  REAL(open64);
  OPEN_BODY(AT_FDCWD, real(path, flags, mode));
}
int openat(int folder, const char* path, int flags, ...) {
  REAL(openat);
  OPEN_BODY(folder, real(folder, path, flags, mode));
}
int openat64(int folder, const char* path, int flags, ...) {
  REAL(openat64);
  OPEN_BODY(folder, real(folder, path, flags, mode));
}

#define FOPEN_BODY() \
  char a[PATH_MAX]; \
  if (mode[0] == 'r' && !strchr(mode, '+')) return real(path, mode); \
  BEGIN(); \
  full(AT_FDCWD, path, a); \
  if (before("open", a, "") < 0) END(NULL); \
  FILE* result = real(path, mode); \
  if (result) record("open", a, "", mode[0] == 'w', NULL, 0); \
  END(result)

FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  FOPEN_BODY();
}
FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  FOPEN_BODY();
}

// ---- writing
static ssize_t do_write(int fd, const void* data, size_t size, long long offset,
                        ssize_t (*real)(int, const void*, size_t, off_t)) {
  char a[PATH_MAX];
  BEGIN();
  full(fd, NULL, a);
  const int what = before("write", a, "");
  if (what < 0) END(-1);
  if (what != go_on) size = (size + 1) / 2;
  const ssize_t result = real(fd, data, size, (off_t)offset);
  if (what == half_then_die) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  if (result > 0 && offset < 0) offset = (long long)lseek(fd, 0, SEEK_CUR) - result;
  if (result > 0) record("write", a, "", offset, data, (size_t)result);
  END(result);
}

static ssize_t plain_write(int fd, const void* data, size_t size, off_t offset) {
  (void)offset;
  return syscall(SYS_write, fd, data, size);
}
static ssize_t placed_write(int fd, const void* data, size_t size, off_t offset) {
  return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t write(int fd, const void* data, size_t size) { return do_write(fd, data, size, -1, plain_write); }
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return do_write(fd, data, size, offset, placed_write);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return do_write(fd, data, size, offset, placed_write);
}
ssize_t writev(int fd, const struct iovec* parts, int parts_count) {  // part by part: a short write is allowed
  ssize_t all = 0;
  for (int i = 0; i < parts_count; ++i) {
    if (parts[i].iov_len == 0) continue;
    const ssize_t one = write(fd, parts[i].iov_base, parts[i].iov_len);
    if (one < 0) return all > 0 ? all : -1;
    all += one;
    if ((size_t)one < parts[i].iov_len) break;
  }
  return all;
}

// A FILE's buffer is written by the C library itself, out of reach: what goes into it counts instead.
size_t fwrite(const void* data, size_t size, size_t items, FILE* file) {
  REAL(fwrite);
  char a[PATH_MAX];
  const int fd = fileno(file);
  if (fd < 3) return real(data, size, items, file);
  BEGIN();
  full(fd, NULL, a);
  const int what = before("write", a, "");
  if (what < 0) END(0);
  const size_t result = real(data, size, items, file);
  fflush(file);
  const long long end = (long long)lseek(fd, 0, SEEK_CUR);
  record("write", a, "", end - (long long)(result * size), data, result * size);
  END(result);
}

// ---- flushing, names, folders
static int do_sync(int fd, int (*real)(int)) {
  char a[PATH_MAX];
  struct stat status;
  BEGIN();
  full(fd, NULL, a);
  const char* kind = fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) ? "syncdir" : "fsync";
  if (before(kind, a, "") < 0) END(-1);
  const int result = real(fd);
  if (result == 0) record(kind, a, "", 0, NULL, 0);
  END(result);
}
int fsync(int fd) {
  REAL(fsync);
  return do_sync(fd, real);
}
int fdatasync(int fd) {
  REAL(fdatasync);
  return do_sync(fd, real);
}

#define TWO_PATHS(kind, from_fd, from, to_fd, to, flag, call) \
  char a[PATH_MAX], b[PATH_MAX]; \
  BEGIN(); \
  full(from_fd, from, a); \
  full(to_fd, to, b); \
  if (before(kind, a, b) < 0) END(-1); \
  const int result = call; \
  if (result == 0) record(kind, a, b, flag, NULL, 0); \
  END(result)

int rename(const char* from, const char* to) {
  REAL(rename);
  TWO_PATHS("rename", AT_FDCWD, from, AT_FDCWD, to, 0, real(from, to));
}
int renameat(int f, const char* from, int t, const char* to) {
  REAL(renameat);
  TWO_PATHS("rename", f, from, t, to, 0, real(f, from, t, to));
}
int renameat2(int f, const char* from, int t, const char* to, unsigned flags) {
  REAL(renameat2);
  TWO_PATHS("rename", f, from, t, to, (long long)flags, real(f, from, t, to, flags));
}
int link(const char* from, const char* to) {
  REAL(link);
  TWO_PATHS("link", AT_FDCWD, from, AT_FDCWD, to, 0, real(from, to));
}
int linkat(int f, const char* from, int t, const char* to, int flags) {
  REAL(linkat);
  TWO_PATHS("link", f, from, t, to, 0, real(f, from, t, to, flags));
}

#define ONE_PATH(kind, fd, path, flag, call) \
  char a[PATH_MAX]; \
  BEGIN(); \
  full(fd, path, a); \
  if (before(kind, a, "") < 0) END(-1); \
  const int result = call; \
  if (result == 0) record(kind, a, "", flag, NULL, 0); \
  END(result)

int unlink(const char* path) {
  REAL(unlink);
  ONE_PATH("delete", AT_FDCWD, path, 0, real(path));
}
int unlinkat(int fd, const char* path, int flags) {
  REAL(unlinkat);
  ONE_PATH("delete", fd, path, flags & AT_REMOVEDIR ? 1 : 0, real(fd, path, flags));
}
int rmdir(const char* path) {
  REAL(rmdir);
  ONE_PATH("delete", AT_FDCWD, path, 1, real(path));
}
int remove(const char* path) {
  struct stat status;
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) ? rmdir(path) : unlink(path);
}
int mkdir(const char* path, mode_t mode) {
  REAL(mkdir);
  ONE_PATH("mkdir", AT_FDCWD, path, 0, real(path, mode));
}
int mkdirat(int fd, const char* path, mode_t mode) {
  REAL(mkdirat);
  ONE_PATH("mkdir", fd, path, 0, real(fd, path, mode));
}
int ftruncate(int fd, off_t size) {
  REAL(ftruncate);
  ONE_PATH("truncate", fd, NULL, (long long)size, real(fd, size));
}
int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  ONE_PATH("truncate", fd, NULL, (long long)size, real(fd, size));
}

// Copies inside the kernel are refused, so that a program writes what it copies.
ssize_t sendfile(int to, int from, off_t* offset, size_t size) {
  (void)to, (void)from, (void)offset, (void)size;
  errno = EINVAL;
  return -1;
}
ssize_t sendfile64(int to, int from, off64_t* offset, size_t size) {
  (void)to, (void)from, (void)offset, (void)size;
  errno = EINVAL;
  return -1;
}
ssize_t copy_file_range(int from, off64_t* a, int to, off64_t* b, size_t size, unsigned flags) {
  (void)from, (void)a, (void)to, (void)b, (void)size, (void)flags;
  errno = EXDEV;
  return -1;
}
