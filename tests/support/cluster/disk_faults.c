/* The disk of one process, as the file DISK_FAULTS_FILE says: slow, failing to sync, or failing
 * altogether. Preloaded (LD_PRELOAD). Whoever changes the file changes the disk in an instant, and
 * reads there how often a call was late or has failed.
 *
 * A sync that is late or fails has done nothing before: what it was for is still in the kernel's
 * memory alone, as on a disk that ails, though no power is cut here. Writes are late or fail only to
 * regular files: sockets and pipes are no disk, and neither is what a process says on its standard
 * output, which may lie elsewhere. No symbol is looked up and nothing allocated, as
 * allocators may write before the program begins.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct page {
  int64_t sync_us, write_us; /* so much later */
  int64_t syncs_fail, writes_fail;
  uint64_t late, failed; /* calls so far */
};

static struct page *shown(void) {
  static struct page *mapped;
  if (mapped == NULL) {
    const char *path = getenv("DISK_FAULTS_FILE");
    int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) abort(); /* a disk that silently stays sound would prove nothing */
    void *page = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED) abort();
    mapped = page;
  }
  return mapped;
}

static int64_t read_number(int64_t *number) { return __atomic_load_n(number, __ATOMIC_RELAXED); }

static void count(uint64_t *calls) { __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED); }

static void be_late(int64_t by_us) {
  struct timespec left = {by_us / 1000000, by_us % 1000000 * 1000};
  count(&shown()->late);
  while (syscall(SYS_nanosleep, &left, &left) && errno == EINTR) {
  }
}

static int fail(void) {
  count(&shown()->failed);
  errno = EIO;
  return -1;
}

/* Return whether the call fails; it has been late then. */
static int ails(int64_t *by_us, int64_t *fails) {
  int64_t us = read_number(by_us);
  if (us > 0) be_late(us);
  return read_number(fails) != 0;
}

static int sync_ails(void) {
  struct page *page = shown();
  return ails(&page->sync_us, &page->syncs_fail);
}

static int write_ails(int file) {
  struct page *page = shown();
  struct stat found;
  if (file <= STDERR_FILENO) return 0;
  if (!read_number(&page->write_us) && !read_number(&page->writes_fail)) return 0;
  if (syscall(SYS_fstat, file, &found) || !S_ISREG(found.st_mode)) return 0;
  return ails(&page->write_us, &page->writes_fail);
}

int fsync(int file) { return sync_ails() ? fail() : (int)syscall(SYS_fsync, file); }

int fdatasync(int file) { return sync_ails() ? fail() : (int)syscall(SYS_fdatasync, file); }

ssize_t write(int file, const void *data, size_t bytes) {
  return write_ails(file) ? fail() : syscall(SYS_write, file, data, bytes);
}

ssize_t writev(int file, const struct iovec *data, int count_of) {
  return write_ails(file) ? fail() : syscall(SYS_writev, file, data, count_of);
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t at) {
  return write_ails(file) ? fail() : syscall(SYS_pwrite64, file, data, bytes, at);
}

ssize_t pwrite64(int file, const void *data, size_t bytes, off64_t at) {
  return write_ails(file) ? fail() : syscall(SYS_pwrite64, file, data, bytes, at);
}
