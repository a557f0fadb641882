/* The clocks of one process, moved by what the file WALL_CLOCK_FILE says; whoever changes it moves
 * them in an instant. Preloaded (LD_PRELOAD).
 *
 * The wall clock is ahead by whole seconds. The boot-time clock runs faster or slower by so many
 * parts of a million, from what it showed when that was said; its rate is all that leases trust. The
 * monotonic clock is the host's, as when somebody sets its date: waits rest on it. A wait with a
 * deadline by the wall clock lasts as long as when it began: the host would end it sooner or later,
 * too, which is not imitated. No allocation, no symbol looked up while a clock is read: allocators
 * read clocks before the program begins.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

struct page {
  int64_t ahead_s;
  uint64_t turn; /* odd while the three below are being written */
  int64_t ppm, since_ns, offset_ns;
};

static volatile struct page *shown(void) {
  static volatile struct page *mapped;
  if (mapped == NULL) {
    const char *path = getenv("WALL_CLOCK_FILE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) abort(); /* a clock that silently stays where it is would prove nothing */
    void *page = mmap(NULL, sizeof *mapped, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED) abort();
    mapped = page;
  }
  return mapped;
}

static int64_t moved_s(void) { return shown()->ahead_s; }

static int64_t run_on(int64_t host_ns) {
  volatile struct page *page = shown();
  int64_t ppm, since_ns, offset_ns;
  uint64_t turn;
  do {
    turn = __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE);
    ppm = page->ppm;
    since_ns = page->since_ns;
    offset_ns = page->offset_ns;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
  } while (turn % 2 || turn != __atomic_load_n(&page->turn, __ATOMIC_RELAXED));
  return host_ns + offset_ns + (int64_t)((__int128)(host_ns - since_ns) * ppm / 1000000);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (failed) return failed;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += moved_s();
  if (clock == CLOCK_BOOTTIME) {
    int64_t ns = run_on(now->tv_sec * NS_PER_S + now->tv_nsec);
    now->tv_sec = ns / NS_PER_S;
    now->tv_nsec = ns % NS_PER_S;
  }
  return 0;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec found;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *seconds) {
  struct timespec found;
  if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
  if (seconds != NULL) *seconds = found.tv_sec;
  return found.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
  return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

/* A deadline by the wall clock is of this century, one by another clock of this boot. */
static struct timespec by_host(const struct timespec *deadline) {
  struct timespec moved = *deadline;
  if (moved.tv_sec > 1000000000) moved.tv_sec -= moved_s();
  return moved;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *deadline) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (real == NULL) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (real == NULL) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec until = by_host(deadline);
  return real(condition, mutex, &until);
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *deadline) {
  static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
  if (real == NULL) real = dlsym(RTLD_NEXT, "cnd_timedwait");
  struct timespec until = by_host(deadline);
  return real(condition, mutex, &until);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *deadline) {
  static int (*real)(sem_t *, const struct timespec *);
  if (real == NULL) real = dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec until = by_host(deadline);
  return real(semaphore, &until);
}
