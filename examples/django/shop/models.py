"""What the shop keeps."""

from django.db import models


class Payment(models.Model):
    """Money that came in; nothing keeps an invoice from being booked twice but hookonce."""

    invoice = models.CharField(max_length=255)
    cents = models.BigIntegerField()
    booked_at = models.DateTimeField(auto_now_add=True)

    def __str__(self):
        """Return what the admin shows."""
        return f"{self.invoice}: {self.cents / 100:.2f}"
