"""`path("hooks/", include("hookonce.django.urls"))`: POST /hooks/<source>."""

from django.urls import path

from hookonce.django.views import receive

app_name = "hookonce"
urlpatterns = [path("<path:rest>", receive, name="receive")]
