// Duty: fail chosen system calls of the addon: loaded before all other libraries (LD_PRELOAD), told by
// a file that is mapped at the start which kinds of calls fail, from which one on, and how many.
//
// Only calls that the addon itself makes count: the caller's address lies in a *.node file.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPEN = 1, MAP = 2, THREAD = 4, READ = 8, NOTIFY = 16, OFD = 32 };

struct control {
  volatile int32_t kinds;  // a sum of the above; 0: nothing fails
  volatile int32_t first;  // the first call that fails, from 1
  volatile int32_t times;  // how many on end
  volatile int32_t calls;  // how many there were
};

static struct control *control;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("OPENKV_TEST_FAULTS");
  if (path == NULL) return;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void *at = (void *)syscall(SYS_mmap, NULL, sizeof(struct control), PROT_READ | PROT_WRITE,
                             MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (at != MAP_FAILED) control = at;
}

static int is_addon(void *caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return 0;
  return strstr(info.dli_fname, ".node") != NULL;
}

static int fails(int kind, void *caller) {
  if (control == NULL || (control->kinds & kind) == 0 || !is_addon(caller)) return 0;
  int32_t call = __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
  return call >= control->first && call - control->first < control->times;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL_IF(kind, error, answer) \
  if (fails(kind, __builtin_return_address(0))) { \
    errno = error; \
    return answer; \
  }

static mode_t mode_of(int flags, va_list rest) {
  return (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
}

#define OPENS(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    FAIL_IF(OPEN, EMFILE, -1) \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = mode_of(flags, rest); \
    va_end(rest); \
    return real(path, flags, mode); \
  }
OPENS(open)
OPENS(open64)

#define MAPS(name, offset_type) \
  void *name(void *at, size_t length, int protection, int flags, int fd, offset_type offset) { \
    REAL(name); \
    if (fd >= 0) FAIL_IF(MAP, ENOMEM, MAP_FAILED) \
    return real(at, length, protection, flags, fd, offset); \
  }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
  REAL(pthread_create);
  if (fails(THREAD, __builtin_return_address(0))) return EAGAIN;
  return real(thread, attributes, run, argument);
}

// Not EIO, which SQLite takes for a damaged file.
#define READS(name, offset_type) \
  ssize_t name(int fd, void *into, size_t length, offset_type offset) { \
    REAL(name); \
    FAIL_IF(READ, ESTALE, -1) \
    return real(fd, into, length, offset); \
  }
READS(pread, off_t)
READS(pread64, off64_t)

int inotify_init1(int flags) {
  REAL(inotify_init1);
  FAIL_IF(NOTIFY, EMFILE, -1)
  return real(flags);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask) {
  REAL(inotify_add_watch);
  FAIL_IF(NOTIFY, ENOSPC, -1)
  return real(fd, path, mask);
}

int epoll_create1(int flags) {
  REAL(epoll_create1);
  FAIL_IF(NOTIFY, EMFILE, -1)
  return real(flags);
}

int eventfd(unsigned int count, int flags) {
  REAL(eventfd);
  FAIL_IF(NOTIFY, EMFILE, -1)
  return real(count, flags);
}

// As a kernel without locks of the open file description answers.
#define CONTROLS(name) \
  int name(int fd, int command, ...) { \
    REAL(name); \
    va_list rest; \
    va_start(rest, command); \
    void *argument = va_arg(rest, void *); \
    va_end(rest); \
    if (command == F_OFD_SETLK || command == F_OFD_GETLK) FAIL_IF(OFD, EINVAL, -1) \
    return real(fd, command, argument); \
  }
CONTROLS(fcntl)
CONTROLS(fcntl64)
